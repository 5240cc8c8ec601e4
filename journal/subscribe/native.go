package subscribe

/*
#include <malloc.h>
#include <stddef.h>

static size_t held(void) {
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
#endif
#endif
	return 0;
}

static void trim(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
*/
import "C"

// NativeBytes is what the process holds outside Go's heap: libzmq's queues, and Pebble's cache and memtables. 0 where the C library does
// not tell (it is not glibc, or older than 2.33).
func NativeBytes() int64 { return int64(C.held()) }

// TrimNative gives back to the system what the C library keeps and does not use.
func TrimNative() { C.trim() }
