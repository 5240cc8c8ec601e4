// Package mooncake is the client of a Mooncake master's admin HTTP API, the authority that a reconciliation (rule R9) asks. It
// can only read: five GET calls, and no code path to any other method or path.
//
//	Status     /kv_events/status      the publisher's counters: loss at the tail, restarts, a publisher that is off
//	Health     /health                leader or standby, ready or not
//	Keys       /get_all_keys          the keys of tenant `default`, streamed
//	BatchQuery /batch_query_keys      where named keys are readable
//	Segments   /get_segments_detail   the mounted memory segments
//
// /query_key is left out on purpose: it grants leases, and a reader that grants leases keeps objects from eviction. /role says
// nothing that /health does not.
//
// # Promises
//
//  1. An error never looks like an answer. A listing that was cut is an error, not a shorter listing; a key that did not come back is
//     never "absent"; a reply that is not wholly understood is a [BrokenReplyError].
//  2. An empty body with status 200 is an answer: no keys. A master that was restarted answers so.
//  3. At most one request is under way per [Client], over one kept connection, and after each comes a pause of PauseFactor times what it
//     took, but at most 30 s behind one that was not answered: with the default, a master spends at most half of its time on one client. (A request on a kept connection that the
//     master had closed is sent again once by net/http; it had not been read.)
//  4. Memory is bounded by one key (Keys) or one reply (the others: of BatchQuery to BatchKeys keys), never by the number of keys. A reply of
//     answers is read whole before it is understood: the master does not wait for that, and the pause behind the call runs meanwhile.
//  5. The token appears in no error and in nothing that is printed, also where the other end echoes it.
//  6. Errors name the URL, what happened and what to do next, and are told apart with errors.As: [StandbyError],
//     [BrokenReplyError], [DeniedError], [UnreachableError], [TimeoutError].
//
// # Traps
//
// Recorded from two real masters, August 2026 (../shared/spec/master-admin.md); client_test.go and its neighbours hold each.
//
//   - The listing ends each key with a newline and escapes nothing: a key that contains a newline comes as several keys,
//     which cannot be told from real ones. It is not one moment either: 1,024 shards are locked one by one. One branch also lists
//     entries that are not readable yet, so being listed proves nothing.
//   - The listing and the media cover the tenant `default` only.
//   - The value of keys= is URL-decoded first and split on commas then: a key with a comma cannot be asked, escaped or not. An
//     empty key can only be asked by a stray comma. Both are [Unaskable], and not sent.
//   - One key that is no valid UTF-8 fails the whole call: 503, text `503 Service Unavailable`, no Content-Type. Such keys are
//     not sent. Should another kind of key do the same, halving finds it, in about 2 log n calls.
//   - A malformed %x becomes `?` and cuts off the rest of the list, with status 200 and "success":true: so every asked
//     key must come back, under its name, once, and nothing else. Everything but letters, digits and -._~ is escaped (a + alone
//     is a space).
//   - "ok":true with no replica named is no absence, nor is OBJECT_NOT_FOUND for a listed key: the caller must leave both in doubt.
//     A replica class that this client does not know (a fourth kind beside disk_values, local_disk_values and
//     nof_values) makes the entry [Unknown] rather than absent from disk.
//   - A standby answers everything but health with 503 and error_code -1011, also when it just became one. An HTML page, a cut
//     JSON or a text with the same status comes from something else, or from a master in trouble.
//   - Later masters write skipped_keyless_events where earlier ones write skipped_unparsed_keys. Which of them was there
//     decides rule R11, so [Status] tells.
//
// # What a reverse proxy may change
//
// Masters speak no TLS, so https means a proxy in front. Chunked replies are accepted, since a cut one shows; a listing with
// neither Content-Length nor chunks is refused, because its end and a broken connection look the same. Compression is not asked for.
// A proxy's limit on the request line (8 KiB is common) answers 414, and is halved away like a bad key.
//
// Proxies named by the environment (HTTP_PROXY) are ignored: a reading must come from the master that was named, and the token
// is for it alone. Redirects are errors for the same reason.
//
// # One client for what
//
// A listing of a million keys takes the slot for seconds, and as long again passes before the next call. Status polls that must not wait
// for that need a Client of their own, which may then spend its own half of the master's time.
package mooncake
