package datadir

import (
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// GateFile is the name of the gate.
const GateFile = gateFile

// CheckExactly is Check, and that the gate is byte by byte as it is written: it has no checksum.
func CheckExactly(fs vfs.FS, dir string) error {
	if err := Check(fs, dir); err != nil {
		return err
	}
	f, err := fs.Open(fs.PathJoin(dir, gateFile))
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return err
	}
	for format := 1; format <= Format; format++ {
		if string(b) == fmt.Sprintf("%s%d\n", gatePrefix, format) {
			return nil
		}
	}
	return fmt.Errorf("it says %q", b)
}
