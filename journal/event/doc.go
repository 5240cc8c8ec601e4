// Package event is the wire format of the Mooncake KV event stream: a scanner for the hot path, a full decoder for
// display, and an encoder that writes what the real publisher writes. The format is the subscriber guide
// (spec/subscriber-guide.md, "Transport", "Event envelope", "Legacy compatibility"); what is tolerated and what is damage
// is rule R6 of the design. The package has no I/O and no clock.
//
// # The bytes
//
// A message has three frames:
//
//	frame 0   topic, empty                       (any topic is accepted)
//	frame 1   sequence number, 8 bytes, unsigned, big-endian
//	frame 2   payload, MessagePack
//
// The payload is an array of three elements (two or more are accepted):
//
//	93                            array of 3
//	  cf 00 00 01 a2 29 0d 0c 2a  time of sending, Unix milliseconds (a float below 1e11: seconds)
//	  91                          events: array of 0..64 (any number is accepted)
//	    de 00 14                  event: map of 20, see below
//	      a8 "event_id" 01
//	      …
//	  00                          dp_rank
//
// The fields of an event, in the order of the real publisher (any order is accepted); the fields marked L exist only
// with kv_events_emit_legacy_compat, and object_key only with kv_events_emit_object_key:
//
//	all types        event_id, timestamp, event_type, type L, model_name, block_size, additional_salt, lora_name,
//	                 tenant_id, backend_id, medium, dp_rank
//	stored, removed  … group_id, object_key, seq_hashes (always empty), block_hashes L (always empty),
//	                 base_block_idx (always nil)
//	stored           … parent_hash (always nil), token_ids (always nil), parent_block_hash L (always nil)
//
// That makes maps of 12, 17 and 20 fields for cleared, removed and stored, or 11, 15 and 17 without the legacy fields.
// Integers have their smallest encoding, texts are str.
//
// # Invariants
//
//  1. A Batch holds all events of a message or none. One bad event damages the whole batch.
//  2. Scan decides on every message. It never panics, it never fails without a Cause, and what it allocates is bounded
//     by the bytes that are there, not by the sizes that a message promises.
//  3. Text is bytes. Nothing but a medium has to be valid UTF-8, and str and bin are the same.
//  4. The last of duplicate fields counts, also where it is nil.
//  5. Everything that Scan and Decode return aliases the message, nothing is copied.
//  6. Causes are part of the journal's format.
//
// # Two ways to read an event
//
// Nearly every event of a real publisher has the known fields in the known order. knownEvent compares the names with
// that order and picks the values out; anything else makes it give up, and anyEvent reads the event again, field by
// field. Only anyEvent decides about damage. A publisher with one more field is thus read correctly, at a third of the
// speed.
//
// Measured with BenchmarkScan and BenchmarkEncode on an Intel Xeon with two shared cores (Go 1.26, messages of 64 events,
// keys of 64 bytes, 386 bytes an event, one core, no allocations; the slower figure with neighbours at work, the faster
// one in a quiet moment):
//
//	Scan, known order       9,000,000–22,000,000 events/s
//	Scan, any order         2,200,000– 5,700,000 events/s
//	AppendPayload           2,000,000– 7,200,000 events/s
//
// Per second of processor time Scan reads 14,000,000–16,000,000 events of the captures of real publishers, which send
// two to six events a message, if the messages are in the cache, and 7,000,000 if they come from memory.
//
// vmihailenco/msgpack/v5 writes (AppendPayload) and is what FuzzScan compares the scanner with.
package event
