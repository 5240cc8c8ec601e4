// Package oracle answers what rules R1-R8 of the design allow to be claimed, slowly and without any storage, and makes
// random streams whose truth is known. Tests hold the real code against both.
//
// # The oracle
//
// An [Oracle] eats one source's records. It remembers what each record did to the claims, then answers any question by
// looking back from the position that is asked about: the newest event of the object itself, the clears of its scope
// behind that, the newest mark. Nothing is folded into a running state, so that the past and the present are the same
// question. It shares no code with the continuity, index and query packages; it trusts only the decoder.
//
// Where the design leaves room, the oracle decides as follows:
//
//   - A duplicate is as if it had not been received: it does not make a window of R5 hold a message either.
//   - A connected record that is not preceded by a disconnected one starts a new connection all the same.
//   - In a window of R5 a message whose numbers go on is of the old connection, as far as gaps are concerned: no line. The first
//     message behind the window is judged as the first of a connection.
//   - Across a connection, seq + 1 is a reconnect whatever the event_id says, unless that is not higher than the last.
//   - A message without a seq changes nothing about what the next one must follow; it is a mark.
//   - A seq of 0, which no publisher sends, is as if no number were known: what comes behind it does not follow.
//   - lost_events_max saturates at the largest uint64.
//
// # The streams
//
// [Generate] runs a publisher host: a store, the queue between store and socket, the socket, the network, and the
// recorder's ear. The truth beside each record is what the store held after everything that the publisher had announced
// by then, where:
//
//   - A change is announced once the last event of it has a number: sent, or dropped from the queue. A change is the events
//     that the store makes under one lock (an upsert: removed, stored). Half a change has not been announced.
//   - Events get numbers in the order of the changes: first the batch in the hand of the sending thread, then what
//     the queue drops meanwhile. So what is announced is always a beginning of the store's history.
//   - A dropped event is announced with the next batch that is sent, because it has no moment of its own.
//   - A cleared event changes nothing in the store: what a remove-all removes is removed change by change, and what is
//     stored while it runs survives.
//   - A publisher without object keys announces no changes. Its truth is what the store holds.
//   - A record that is no message, or a duplicate, is at the position of the last message before it.
//   - A new process announces an empty store with its first message, heard or not.
//
// Of publisher time T the truth is well defined where the publisher's clock passed T once: the truth behind the last
// batch with a time <= T, heard or not.
//
// # Where the rules are too bold
//
// R1-R8 as written confirm what is not so in three kinds of streams. Generate makes them only if asked, and [Repairs] are
// readings under which no contradiction is left; holes_test.go has the smallest streams.
//
//   - [Options.LoseSurvivors], [Repairs.Clears]: an object is stored while a remove-all runs, that event is lost, and the
//     cleared is heard two or more batches behind the gap. R7 confirms that the object is absent.
//   - [Options.UndatedAnywhere], [Repairs.Undated]: a batch more than 1 h ahead takes its predecessor's time, but the predecessor
//     was lost or damaged, or there is none. R8 then says that what the batch did was so at a time when it was not.
//     With a predecessor too the batch was sent later than R8 says; [Stream.TruthAt] reads times as R8 does and so does
//     not see that, [Stream.TruthAtClock] does (in 379 of 3,000 streams as written, in none with the repair).
//   - An empty batch between the halves of a change that a full batch cut ends the doubt of R8. No real publisher sends
//     empty batches; here they are sent only while the queue is empty, where that is right.
//
// A restart that neither connection records nor numbers show is not made at all: a recorder sees the connection break.
//
// # Measured
//
// 2 cores: a stream of 67 records (the mean) takes 0.8 ms to make and 0.2 ms to apply; an answer takes 0.3 to 0.5 µs. Over
// 25,000 streams (seeds from 1,000,000) none of 54 million confirmed answers was wrong; 31 % of the answers at offsets and 24 %
// of those at times are confirmed. Of the options, LoseSurvivors alone leads to a contradiction in 4 of 4,000 streams,
// UndatedAnywhere alone in 11; with both repairs there is none in 8,000. With a rule taken out the test fails within 5,000
// streams: either shadow, the cut, R7 on what was stored, each half of R7 on keys, the window and its mark, either connection
// record, the mark of damage, duplicates, a proven T, a time too far ahead, restarts by seq and by event_id.
//
// The answers and gaps agree with conformance/model.py on all captures and on 150 streams without messages in windows
// (1.4 million answers), but for one thing: where the clock passed T twice the state here is that behind the last batch with
// a time <= T, and model.py's that behind the first. Neither is confirmed.
package oracle
