package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
)

// Newer returns an error of the cause datadir.ErrNewer where the index in dir was written by a newer program. It changes nothing: look
// before an index is opened for writing, which exchanges files. An index of an older form, a damaged one and none at all are no
// errors: they are computed anew.
func Newer(dir string, o Options) error {
	o = o.withDefaults()
	path := o.FS.PathJoin(dir, folder)
	if _, err := o.FS.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	db, err := datadir.OpenPebble(path, o.pebble(o.FS, true))
	if err != nil {
		if what := newerDatabase(err.Error()); what != "" {
			return newerIndex(path, what)
		}
		return nil
	}
	defer db.Close()
	row, err := get(db, []byte{keyJournal})
	if err != nil {
		return nil
	}
	return newerRows(path, row)
}

// newerRows looks at the format in the row j.
func newerRows(path string, row []byte) error {
	if len(row) < 4+len(journal.ID{}) {
		return nil // no form of this row was ever shorter
	}
	if format := binary.BigEndian.Uint32(row); format > formatVersion {
		return newerIndex(path, fmt.Sprintf("rows of format %d, this program reads %d", format, formatVersion))
	}
	return nil
}

func newerIndex(path, what string) error {
	return fmt.Errorf("%s: %w: it has %s; use the newer program, or have this one compute the index in its own form: `kvjournal rebuild`", path, datadir.ErrNewer, what)
}

// comparerVersion is the number at the end of a comparer's name: that of the order of the keys.
const comparerVersion = 1

var otherComparer = regexp.MustCompile(`comparer name from file "kvjournal\.index\.(\d+)"`)

// newerDatabase says what of a database that Pebble does not open is newer; "" where nothing shows that. Pebble has no values for these.
func newerDatabase(message string) string {
	if strings.Contains(message, "unknown format major version") {
		return "a database of a newer form"
	}
	if m := otherComparer.FindStringSubmatch(message); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n > comparerVersion {
			return fmt.Sprintf("keys in the order %d, this program knows %d", n, comparerVersion)
		}
	}
	return ""
}
