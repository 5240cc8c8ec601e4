package journal

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

// checkBaseline reads the baseline of a pruned journal, and looks for what others left.
func (c *checker) checkBaseline(ctx context.Context) error {
	h := c.j.Horizon()
	c.Horizon = h.Offset
	if format, err := datadir.Version(c.o.FS, c.dir); err == nil && format < c.j.Format() {
		c.find(Finding{File: datadir.GateFile, What: fmt.Sprintf("it says format %d, and a journal with a baseline is of format %d", format, c.j.Format()), Severity: Note, Next: NextNothing})
	}
	if h.Generation > 0 {
		r := &baselineReader{h: &h, codec: c.j.codec}
		err := c.j.readBaseline(ctx, r, func(_, _ []byte) error { return nil })
		c.Baseline = r.rows
		var corrupt *CorruptError
		switch {
		case errors.As(err, &corrupt):
			c.torn = true
			file := c.fileOf(err)
			if file == "" {
				file = c.holder(baselineKey(h.Generation, r.blocks))
			}
			c.find(Finding{File: file, Offset: corrupt.Offset, What: corrupt.What, Next: NextRepair})
		case err != nil:
			return err
		}
	}
	return c.readTrouble(c.j.strayBaselines(func(low, _ []byte) error {
		c.find(Finding{File: folder, Key: hex.EncodeToString(low), What: "there are blocks of a baseline that is not current", Severity: Note, Next: NextNothing})
		return nil
	}), "baselines that are not current")
}
