// Package measure has the arithmetic and the few system calls of measuring: percentiles, medians of rounds, processor time, the bytes that
// lie on disk, and a copy of a directory as a crash would leave it.
package measure
