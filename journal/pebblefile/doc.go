// Package pebblefile reads the files of a Pebble database one by one, without opening it: so damage is named by its file, and what is
// readable can be had where Pebble itself refuses to open.
//
//	000012.sst          a table: blocks, each with a checksum; an index of them, properties, and a footer at the end
//	000013.log          a write-ahead log: chunks of a checksum, a length, the log's number, the offset that was synced before, and data
//	MANIFEST-000001     which tables and logs count, as chunks of the same kind
//	OPTIONS-000014      what the database was opened with, as text; only the names in it matter to a reader
//	marker.NAME.N.X     an empty file whose name says that NAME is X: which MANIFEST counts, and the version of the format
//
// Nothing here writes, and nothing decides what is live: a caller that may not mix old rows with new ones goes by the sequence
// numbers, or by what the rows say of themselves.
package pebblefile
