package main

import (
	"fmt"

	"github.com/kvjournal/kvjournal/query/service"
)

// defaultMinFree leaves room for what goes on while recording pauses: compactions, and the index that catches up.
const defaultMinFree = "1GiB"

// smallDisk is the share of a disk that the default never goes beyond.
const smallDisk = 20 // a twentieth

// leastFree is --min-free in bytes: as given, or, by default, no more than a twentieth of the disk.
func (f *recordFlags) leastFree(given bool) (uint64, error) {
	least, err := parseSize(f.minFree)
	if err != nil {
		return 0, fmt.Errorf("--min-free: %w", err)
	}
	if given {
		return least, nil
	}
	if total := diskOf(f.dir); total > 0 {
		least = min(least, total/smallDisk)
	}
	return least, nil
}

// diskOf is the size of the disk that dir is on, or will be; 0 where that cannot be told.
func diskOf(dir string) uint64 {
	size, err := service.VolumeSize(nil, dir)
	if err != nil {
		return 0
	}
	return size
}
