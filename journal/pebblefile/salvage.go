package pebblefile

import (
	"context"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Salvage calls f with the rows of each data block of a table that is whole, whatever is damaged around it. Where the index, or the part of
// it that names a block, is damaged too, blocks are taken one behind the other, up to the first that is damaged. The blocks must be columnar
// and not compressed, as those of the journal are.
func Salvage(ctx context.Context, fs vfs.FS, path string, c *pebble.Comparer, f func(Row) error) error {
	file, err := fs.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	schema := colblk.DefaultKeySchema(c, keyBundle)
	all, err := pieces(file, c)
	if err != nil {
		b, _ := io.ReadAll(io.NewSectionReader(file, 0, maxCarved)) // what comes before an error of the disk counts
		return carveRun(ctx, b, &schema, c, f)
	}
	for i := range all {
		p := &all[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.unnamed {
			b, _ := io.ReadAll(io.NewSectionReader(file, int64(p.at.Offset), int64(min(p.at.Length, maxCarved))))
			if err := carveRun(ctx, b, &schema, c, f); err != nil {
				return err
			}
			continue
		}
		b, err := readBlock(file, p.at)
		if err != nil {
			continue
		}
		if _, err := carve(b, &schema, c, f); err != nil {
			return err
		}
	}
	return nil
}
