// Package capture reads and writes .kvcap files: the messages of one source as a
// socket delivered them, with the moments its connection came and went.
//
// A capture is what a recorder hears, before anyone judges it. That makes it the
// fixture of this project's tests, the input of import and the output of
// export. It holds no conclusions: what a lost connection or a
// damaged message means is decided by the reader of the capture, with the same
// code that decides it for a live socket.
//
// # The bytes
//
// All numbers are big-endian. Everything here is part of the format.
//
//	file    = magic record*
//	magic   = "KVCAP001"                             8 bytes
//
//	          +------+------------------+
//	record  = | kind |    received      | [ body ]   kind 1 has a body, 2 and 3 have none
//	          |  u8  | i64, Unix ns     |
//	          +------+------------------+
//	kind    = 1 message | 2 connected | 3 disconnected
//
//	          +--------+  +--------+----------------+
//	body    = | frames |  | length | length bytes   |  as often as frames says
//	          |   u8   |  |  u32   |                |
//	          +--------+  +--------+----------------+
//
// The file ends behind a whole record; any other end is a [CorruptError]. There is
// no checksum: a capture is a stream for pipes and fixtures, not a store. A
// compressed capture has the checksum of zstd.
//
// Where a disconnected and the next connected are adjacent, the boundary between two
// connections is exact. Messages between them may belong to either: the unproven
// window of rule R5.
//
// # Compression
//
// .kvcap.zst is the same stream inside zstd. [Open] goes by the first bytes, because
// files get renamed and piped; [Create] goes by the name, because a new
// file has nothing else to go by.
//
// # Limits
//
// A length read from a file is a claim. [Reader] allocates as the bytes really
// arrive, never more than about twice of what it has read, and refuses frames and messages
// beyond [Limits], so that a hundred bytes of hostile input (or a bomb inside zstd)
// cannot take the memory of the process.
//
// A message of more than 255 frames cannot be written: the count is one byte.
// [Writer.Write] returns [ErrUnwritable] before it has written any of it.
package capture
