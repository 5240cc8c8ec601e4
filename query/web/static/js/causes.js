// The causes of a loss: what each is, and what to do. The words are those of `kvjournal gaps --help`.

export const causes = {
  publisher_queue: ['the publisher\'s own queue overflowed and dropped its oldest events', 'on the master\'s host: make its event queue larger, give its sending thread CPU'],
  transport: ['messages vanished on the way, as at a socket\'s high-water mark', 'on the master\'s host: raise the ZMQ send high-water mark; then look at the network and this host\'s load'],
  recorder_slow: ['messages vanished while kvjournal\'s own buffer was full', 'on this host: a faster disk or fewer neighbours; `record --buffer` helps with bursts only'],
  publisher_restart: ['another publisher process; its numbers start over', 'on the master\'s host: see in its log why it ended; if that was planned, nothing'],
  late_join: ['the recorder joined a stream that ran already', 'nothing; to miss nothing, start kvjournal before the master'],
  disconnected: ['the connection broke and the numbers jumped', 'look at the network between the hosts, and in the master\'s log for a restart at that time'],
  reconnect: ['the connection broke; the numbers go on, which proves nothing', 'look at the network between the hosts; probably nothing is missing'],
  recorder_down: ['no recorder ran, or it paused for want of room on the disk', 'on this host: see in kvjournal\'s log why (`journalctl -u kvjournal`, if it is a service); `record --min-free`'],
  tail_loss: ['the publisher\'s counters say that it sent more than arrived', 'on the master\'s host: as for transport'],
  damaged: ['a message that could not be decoded, kept raw, or offsets that this journal lost', 'compare the master\'s version with the spec; where offsets are missing, check this host\'s disk'],
  silent: ['the master changed something without an event, or lost a segment', 'a restart of the master takes its segments, too; else update it: until then only a reading of it confirms presence'],
  unknown: ['numbers are missing and no event_id tells why', 'let the publisher send event ids; look at its queue and at the network'],
};

// breaks are causes by which nothing need be missing: the stream was interrupted.
export const breaks = new Set(['publisher_restart', 'late_join', 'reconnect', 'disconnected', 'recorder_down']);
