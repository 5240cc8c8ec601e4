package main

/*
#include <malloc.h>

static void boundArenas(int arenas) {
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, arenas);
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}
*/
import "C"

import "runtime"

// boundArenas keeps what the C library's malloc holds near what is used of it. The databases' caches and memtables are allocated there, by
// whatever thread comes along: with an arena for each of eight threads a processor, what one gives back another does not find, and the
// process grows for hours. Memtables get pages of their own, which go back to the system. It is called before other threads begin.
func boundArenas() {
	C.boundArenas(C.int(runtime.GOMAXPROCS(0)))
}
