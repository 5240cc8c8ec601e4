// Package faultfs are filesystems for tests: one that loses power at any moment, operations that fail, disks that are full or slow.
// They go around Pebble's vfs.MemFS and vfs/errorfs, so that every file operation of a data directory meets them.
//
//	Crashable            a memory filesystem that can be cloned as a crash would leave it, at any moment
//	Points               calls a function before every operation that changes something: the moments at which to crash
//	Nth                  the i-th operation fails, once or with all behind it
//	Disk                 a disk that can be full, or whose syncs wait for the test
package faultfs
