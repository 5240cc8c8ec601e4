package service_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
	"github.com/kvjournal/kvjournal/journal/testkit"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/service"
)

// TestDamage damages a directory at random, one file at one place each time, or the journal and what else knows how far it went (its index or
// its head file), and holds what is promised of damage at rest:
//
//	verify     finds it, or nothing that counts was changed: every record and every row of the index is as before
//	answers    are those of the whole directory, or uncertain, or an error; at rest, where the journal stays as it is, and by a writer
//	repair     makes a directory that verifies, whose answers are those of the whole one or uncertain
//
// and nothing panics, or goes on without an end. KVJOURNAL_DAMAGES says how many, KVJOURNAL_SEED repeats; without either these are the same few.
func TestDamage(t *testing.T) {
	seed, n := uint64(1), 6
	if s := os.Getenv("KVJOURNAL_DAMAGES"); s != "" {
		n, _ = strconv.Atoi(s)
		seed = uint64(time.Now().UnixNano())
	}
	if s := os.Getenv("KVJOURNAL_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	for world, name := range []string{"whole", "pruned", "two at once"} {
		t.Run(name, func(t *testing.T) {
			n := (n + world) / 3
			d := newDamaged(t, seed, name == "pruned")
			for i := range n {
				d.one(i, name == "two at once")
				if t.Failed() {
					t.Fatalf("repeat with KVJOURNAL_SEED=%d KVJOURNAL_DAMAGES=%d", seed, 3*(i+1))
				}
				if (i+1)%100 == 0 {
					fmt.Fprintf(os.Stderr, "%s: %d of %d damages, seed %d\n", name, i+1, n, seed)
				}
			}
			d.tell(seed, n)
		})
	}
}

// damaged is the directory that is damaged, and what it answers whole.
type damaged struct {
	t     *testing.T
	rng   *rand.Rand
	w     *world
	fs    *vfs.MemFS      // never changed
	whole *service.AtRest // of a pruned directory, what it was before
	kinds map[string][]string
	dump  string
	base  []journal.Finding
	tally map[string]map[string]int
	// early is what the records up to earlyAt answered, bare what all do without the readings; nil: not asked yet.
	early, bare *query.Engine
	earlyAt     uint64
}

func newDamaged(t *testing.T, seed uint64, pruned bool) *damaged {
	d := &damaged{t: t, rng: rand.New(rand.NewPCG(seed, 3)), w: newWorld(t, seed), kinds: map[string][]string{}, tally: map[string]map[string]int{}}
	d.fs = d.w.atRest()
	truth := d.clone()
	if pruned {
		d.w.prune(d.fs)
	}
	for _, sub := range []string{"", "journal", "index"} {
		names, err := d.fs.List(d.fs.PathJoin(dataDir, sub))
		d.must(err)
		slices.Sort(names)
		for _, name := range names {
			path := d.fs.PathJoin(dataDir, sub, name)
			if info, err := d.fs.Stat(path); err != nil || info.IsDir() {
				continue
			}
			kind := name
			if sub != "" {
				k, _ := pebblefile.KindOf(name)
				kind = sub + " " + k.String()
			}
			d.kinds[kind] = append(d.kinds[kind], path)
		}
	}
	d.dump = d.records(d.clone())
	var err error
	d.whole, err = service.OpenAtRest(t.Context(), dataDir, service.Options{FS: truth})
	d.must(err)
	t.Cleanup(func() {
		d.whole.Close()
		for _, e := range []*query.Engine{d.early, d.bare} {
			if e != nil {
				e.Index.Close()
				e.Journal.Close()
			}
		}
	})
	v, found := d.verify(d.clone())
	d.base = found // a table that a crash cut short may be there
	if !v.Sound || !v.Index.Compared {
		t.Fatalf("the whole directory: %+v\n%+v", v, found)
	}
	t.Logf("%d records, %d index rows, files: %v", v.Journal.Records, v.Index.Rows, d.kinds)
	return d
}

func (d *damaged) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *damaged) clone() *vfs.MemFS {
	fs := vfs.NewMem()
	ok, err := vfs.Clone(d.fs, fs, dataDir, dataDir)
	if !ok || err != nil {
		d.t.Fatal(ok, err)
	}
	return fs
}

// records is the sum of every record of the directory behind its horizon; empty where not all can be read.
func (d *damaged) records(fs vfs.FS) string {
	j, err := journal.OpenReadOnly(dataDir, journal.Options{FS: fs})
	if err != nil {
		return ""
	}
	defer j.Close()
	out := sha256.New()
	var b *journal.Block
	for at := uint64(0); ; at = b.Last() {
		if b, err = j.NextBlock(b, at); errors.Is(err, journal.ErrNotFound) {
			return string(out.Sum(nil))
		}
		if err != nil {
			return ""
		}
		for i := range b.Len() {
			if b.First+uint64(i) <= j.Horizon().Offset {
				continue
			}
			frames, err := b.Frames(i, nil, new([8]byte))
			if err != nil {
				return ""
			}
			fmt.Fprintf(out, "%d %+v %d\n", b.First+uint64(i), *b.Header(i), len(frames))
			for _, f := range frames {
				fmt.Fprintf(out, "%d %s", len(f), f)
			}
		}
	}
}

func (d *damaged) verify(fs vfs.FS) (service.Verified, []journal.Finding) {
	var found []journal.Finding
	v, err := service.Verify(d.t.Context(), dataDir, service.VerifyOptions{FS: fs, Scratch: "scratch", Report: func(f journal.Finding) { found = append(found, f) }})
	if err != nil {
		return v, append(found, journal.Finding{What: err.Error(), Severity: journal.Damage})
	}
	return v, found
}

// harm is a damage.
type harm struct {
	kind, path, how string
	at, size        int64
	bit             int
	also            *harm
}

func (h harm) String() string {
	s := fmt.Sprintf("%s of %s at %d, %d bytes, bit %d", h.how, h.path, h.at, h.size, h.bit)
	if h.also != nil {
		s += " and " + h.also.String()
	}
	return s
}

// draw draws a damage of a file whose kind may be chosen: each kind as often as any other.
func (d *damaged) draw(chosen func(kind string) bool) harm {
	kinds := make([]string, 0, len(d.kinds))
	for k := range d.kinds {
		if chosen(k) {
			kinds = append(kinds, k)
		}
	}
	slices.Sort(kinds)
	h := harm{kind: kinds[d.rng.IntN(len(kinds))]}
	h.path = d.kinds[h.kind][d.rng.IntN(len(d.kinds[h.kind]))]
	info, err := d.fs.Stat(h.path)
	d.must(err)
	h.how = []string{"flip", "flip", "flip", "zero", "truncate", "delete"}[d.rng.IntN(6)]
	if info.Size() == 0 {
		h.how = "delete"
	}
	if h.how != "delete" {
		h.at, h.bit = d.rng.Int64N(info.Size()), d.rng.IntN(8)
		h.size = min(1+d.rng.Int64N(1<<d.rng.IntN(14)), info.Size()-h.at)
	}
	return h
}

// drawTwo draws a damage of the journal, most often of a log, and one of what else knows how far it went.
func (d *damaged) drawTwo() harm {
	h := d.draw(func(kind string) bool { return strings.HasPrefix(kind, "journal ") })
	if d.rng.IntN(4) > 0 {
		h = d.draw(func(kind string) bool { return kind == "journal log" })
	}
	also := d.draw(func(kind string) bool { return strings.HasPrefix(kind, "index ") || kind == "head" })
	h.also = &also
	return h
}

// inflict damages files; it reports whether that changed anything.
func (d *damaged) inflict(fs *vfs.MemFS, h harm) bool {
	changed := d.inflictOne(fs, h)
	return h.also != nil && d.inflictOne(fs, *h.also) || changed
}

func (d *damaged) inflictOne(fs *vfs.MemFS, h harm) bool {
	if h.how == "delete" {
		d.must(fs.Remove(h.path))
		return true
	}
	content := testkit.ReadFile(d.t, fs, h.path)
	changed := slices.Clone(content)
	switch h.how {
	case "flip":
		changed[h.at] ^= 1 << h.bit
	case "zero":
		clear(changed[h.at : h.at+h.size])
	case "truncate":
		changed = changed[:h.at]
	}
	f, err := fs.Create(h.path, vfs.WriteCategoryUnspecified)
	d.must(err)
	_, err = f.Write(changed)
	d.must(errors.Join(err, f.Close()))
	return string(content) != string(changed)
}

func (d *damaged) count(kind, what string) {
	if d.tally[kind] == nil {
		d.tally[kind] = map[string]int{}
	}
	d.tally[kind][what]++
}

// one inflicts one damage, or two, and checks all that is promised.
func (d *damaged) one(i int, two bool) {
	h := d.draw(func(string) bool { return true })
	if two {
		h = d.drawTwo()
	}
	const patience = 5 * time.Minute
	late := time.AfterFunc(patience, func() {
		all := make([]byte, 1<<20)
		all = all[:runtime.Stack(all, true)]
		for _, one := range strings.Split(string(all), "\n\n") {
			if strings.Contains(one, "(*damaged).one(") {
				panic(fmt.Sprintf("%d, %v: no end in sight\n%s", i, h, one))
			}
		}
	})
	defer late.Stop()
	defer func() {
		if p := recover(); p != nil {
			d.t.Errorf("%d, %v: panic: %v", i, h, p)
		}
	}()
	fs := d.clone()
	if !d.inflict(fs, h) {
		d.count(h.kind, "no change")
		return
	}
	d.count(h.kind, "damages")
	asIs := func() *vfs.MemFS {
		c := d.clone()
		d.inflict(c, h)
		return c
	}

	v, found := d.verify(fs)
	found = slices.DeleteFunc(found, func(f journal.Finding) bool { return slices.Contains(d.base, f) })
	same := d.records(asIs()) == d.dump
	switch {
	case v.Damaged > 0 || len(found) > 0 && !v.Sound:
		d.count(h.kind, "found")
	case !same || len(found) == 0 && !v.Index.Compared:
		d.t.Errorf("%d, %v: not found: records the same %v, %+v, %+v", i, h, same, v, found)
	case len(found) > 0:
		d.count(h.kind, "noted")
	default:
		d.count(h.kind, "idle") // every record, and every row of the index, is as before
	}
	d.answers(i, h, asIs())
	d.writer(i, h, asIs())
	d.repair(i, h, asIs())
}

// answers asks at rest, and asks again. A damaged index is computed anew when it is met, as the command does.
func (d *damaged) answers(i int, h harm, fs *vfs.MemFS) {
	before := journalBytes(d.t, fs)
	defer func() {
		if journalBytes(d.t, fs) != before {
			d.t.Errorf("%d, %v: a question changed the journal", i, h)
		}
	}()
	open, what := service.OpenAtRest, "answered"
	for again := false; ; {
		a, err := open(d.t.Context(), dataDir, service.Options{FS: fs})
		if err != nil {
			d.count(h.kind, "refused")
			return
		}
		err = d.compare(fmt.Sprintf("%d, %v, at rest", i, h), &a.Engine)
		cerr := a.Close()
		switch {
		case index.Damage(err) && what == "rebuilt":
			d.t.Errorf("%d, %v: the index is damaged behind a rebuild", i, h)
			return
		case index.Damage(err):
			open, what = service.HealAtRest, "rebuilt"
			continue
		case err != nil || cerr != nil:
			what = "error"
		}
		if again || what == "error" {
			d.count(h.kind, what)
			return
		}
		again, open = true, service.OpenAtRest
	}
}

// writer opens the directory for writing, as a recorder or an import does, and asks.
func (d *damaged) writer(i int, h harm, fs *vfs.MemFS) {
	w, err := service.OpenForWriting(d.t.Context(), dataDir, "test", service.Options{FS: fs})
	if err != nil {
		d.count(h.kind, "writer refused")
		return
	}
	err = w.Index.CatchUp(d.t.Context(), nil)
	if err == nil {
		err = d.compare(fmt.Sprintf("%d, %v, writing", i, h), &query.Engine{Journal: w.Journal, Index: w.Index})
	}
	if err != nil {
		d.count(h.kind, "writer: error")
	}
	w.Close() // its error is the damage's
}

// repair repairs the directory, and checks the new one.
func (d *damaged) repair(i int, h harm, fs *vfs.MemFS) {
	before := digest(d.t, fs)
	r, err := service.Repair(d.t.Context(), dataDir, "repaired", service.RepairOptions{Options: service.Options{FS: fs}, IgnoreGate: true})
	if err != nil && strings.Contains(err.Error(), "no record of this journal can be read") && d.records(fs) == "" {
		d.count(h.kind, "nothing left") // all that a pruned journal has may be in one table
		return
	}
	if err != nil {
		d.t.Errorf("%d, %v: repair: %v", i, h, err)
		return
	}
	if digest(d.t, fs) != before {
		d.t.Errorf("%d, %v: repair changed the damaged directory", i, h)
	}
	if r.Lost > 0 {
		d.count(h.kind, "repaired with a loss")
	}
	d.must(fs.RemoveAll(dataDir))
	d.must(fs.Rename("repaired", dataDir))
	if v, found := d.verify(fs); !v.Sound || !v.Index.Compared || len(found) > 0 {
		d.t.Errorf("%d, %v: the repaired directory: %+v\n%+v", i, h, v, found)
	}
	if r.Lost == 0 && d.records(fs) != d.dump {
		d.t.Errorf("%d, %v: repaired without a loss, but records differ", i, h)
	}
	a, err := service.OpenAtRest(d.t.Context(), dataDir, service.Options{FS: fs})
	if err != nil {
		d.t.Errorf("%d, %v: opening the repaired directory: %v", i, h, err)
		return
	}
	defer a.Close()
	if err := d.compare(fmt.Sprintf("%d, %v, repaired", i, h), &a.Engine); err != nil {
		d.t.Errorf("%d, %v: asking the repaired directory: %v", i, h, err)
	}
}

// digest is the sum of all files of the directory, and their names.
func digest(t *testing.T, fs *vfs.MemFS) string {
	t.Helper()
	out := sha256.New()
	for _, sub := range []string{"", "journal", "index"} {
		names, err := fs.List(fs.PathJoin(dataDir, sub))
		if err != nil {
			continue
		}
		slices.Sort(names)
		for _, name := range names {
			path := fs.PathJoin(dataDir, sub, name)
			if info, err := fs.Stat(path); err == nil && !info.IsDir() {
				fmt.Fprintf(out, "%s %s\n", path, testkit.ReadFile(t, fs, path))
			}
		}
	}
	return string(out.Sum(nil))
}

// tell prints what came of the damages, by kind of file.
func (d *damaged) tell(seed uint64, n int) {
	kinds := make([]string, 0, len(d.tally))
	for k := range d.tally {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	for _, k := range kinds {
		line, _ := json.Marshal(d.tally[k])
		d.t.Logf("%-16s %s", k, line)
	}
	d.t.Logf("(allowed) are answers that differ by the rules: see allowed")
	d.t.Logf("%d damages from seed %d: 0 wrong confirmed answers, 0 panics", n, seed)
}
