package datadir

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func gateText(format int) []byte { return fmt.Appendf(nil, "%s%d\n", gatePrefix, format) }

// Version returns the format that dir's gate names. Errors are those of Check.
func Version(fs vfs.FS, dir string) (int, error) { return version(fs, dir, Format) }

// Raise makes format the least that a program must know to open dir. Whoever is about to write something that programs of an older
// format would misread calls it first: on return it is durable, so an older program refuses the directory from before the first such byte
// on, whatever crashes. A gate that names this format or a later one is left as it is. The caller holds the directory's claim.
func Raise(fs vfs.FS, dir string, format int) error { return raise(fs, dir, format, Format) }

// raise is Raise of a program that knows all formats up to newest.
func raise(fs vfs.FS, dir string, format, newest int) error {
	if format > newest {
		return fmt.Errorf("raising %s to format %d: this program writes up to %d", dir, format, newest)
	}
	now, err := version(fs, dir, newest)
	if err != nil {
		return err
	}
	if now >= format {
		return nil
	}
	return WriteFile(fs, dir, gateFile, gateText(format))
}
