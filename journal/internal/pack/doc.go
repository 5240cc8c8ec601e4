// Package pack lays the payloads of a block's messages out by column, so that compression sees like beside like. It gives back
// exactly the bytes that it was given, whatever they are.
//
// A publisher's events differ in little: a number that goes up by one, a time, a key of which most is 64 random hex digits. All
// else (field names, nils, model, tenant, medium) is the same in event after event. So an event is kept as its shape, which
// is stored once a block, and its variable values:
//
//	shape   literal bytes with holes:   …event_id <ID> …timestamp <TIME> …group_id <PREFIX+KEY> object_key <KEY> seq_hashes…
//	        PREFIX and how much of the KEY follows it, all or the first bytes of it, are the shape's
//	ID      what it is above the number before + 1        (0, mostly)
//	TIME    what it is above the batch's time             (0, mostly)
//	KEY     its text, and apart from that its runs of hex digits, two a byte
//	TEXT    a group_id that does not come from the key
//
// A value fits a hole only if its MessagePack form is the shortest one, so that it can be written again from the value alone. A
// message with anything that fits nowhere is kept raw, byte for byte; nothing is ever rejected.
//
// # Bytes
//
//	small raw uvarint | small len uvarint | small | hex
//
// small is one zstd frame (or the bytes themselves where small len = small raw): the length of each column, uvarint, then the columns
// in the order of the constants in columns.go. hex, two digits a byte, is random and is not compressed.
//
// # Measured
//
// journal/doc.go has the sizes. BenchmarkPack packs and compresses 256 KiB of messages at 930 to 990 MB/s, BenchmarkZstd makes one
// zstd frame of them at 770 MB/s, and BenchmarkUnpack gives them back at 2,000 MB/s (on a busy 2-core machine). Since then digits are packed
// eight at a time, and a group_id that is the start of its key (SGLang: 40 of its bytes) is not stored again: BenchmarkPack takes 0.68 of the
// processor time and BenchmarkUnpack 0.75 (medians of three, in turn), and a block 34.5 B an event in place of 41.3. Hex digits are not
// searched for repeats: where the same keys come back within a block, one frame of the raw bytes may be smaller (31 B an event with
// 1,000 objects).
//
// One message is read from the columns by marks (Open, Messages). BenchmarkOpen and BenchmarkMessage, on a busy 2-core machine: opening 256 KiB takes
// half to four fifths of the time of BenchmarkUnpack, and each message from then on 10 us with 64 events and 2 us with one; 58 and 71 B an event are kept.
package pack
