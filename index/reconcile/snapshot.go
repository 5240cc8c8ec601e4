package reconcile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// ErrSnapshot: a snapshot cannot be used: it is not of the right moment, not whole, or not readable.
var ErrSnapshot = errors.New("the snapshot cannot be used")

// Snapshot gives a list of objects with their media, taken from the master by other means than its admin API. See doc.go for its form, and for
// what makes it sound.
type Snapshot interface {
	// Name is what it is called, for people.
	Name() string
	// Open returns the snapshot that was taken after the record at offset begun was written. It may wait for it; then it calls alive from
	// time to time, and returns its error: the reading is void already.
	Open(ctx context.Context, begun uint64, alive func() error) (io.ReadCloser, error)
}

// SnapshotFile is a Snapshot that an operator puts into a file.
type SnapshotFile struct {
	Path string
	// Ready is told the offset that the snapshot's first line must name, when it may be taken.
	Ready func(begun uint64)
	// Patience is how long the file is waited for. 0: 10 min.
	Patience time.Duration
}

// Name implements Snapshot.
func (f *SnapshotFile) Name() string { return f.Path }

// Open implements Snapshot.
func (f *SnapshotFile) Open(ctx context.Context, begun uint64, alive func() error) (io.ReadCloser, error) {
	if f.Ready != nil {
		f.Ready(begun)
	}
	patience := f.Patience
	if patience == 0 {
		patience = 10 * time.Minute
	}
	for until := time.Now().Add(patience); ; {
		why, file, err := openSnapshot(f.Path, begun)
		if err != nil || file != nil {
			return file, err
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("%w: %s: %s for %v", ErrSnapshot, f.Path, why, patience)
		}
		if err := (realClock{}).Sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
		if err := alive(); err != nil {
			return nil, err
		}
	}
}

// openSnapshot opens the file if it is the one that is waited for; why says why it is not.
func openSnapshot(path string, begun uint64) (why string, out io.ReadCloser, err error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return "it is not there", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	line, err := bufio.NewReader(file).ReadBytes('\n')
	if err != nil && err != io.EOF {
		file.Close()
		return "", nil, err
	}
	h, err := readHead(line)
	switch {
	case len(line) == 0:
		why, err = "it is empty", nil
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	case h.Begun < begun:
		why = fmt.Sprintf("it was taken for offset %d, not for %d", h.Begun, begun)
	case h.Begun > begun:
		err = fmt.Errorf("%w: %s was taken for offset %d, which is still to come: this reading began at %d", ErrSnapshot, path, h.Begun, begun)
	default:
		if _, err = file.Seek(0, io.SeekStart); err == nil {
			return "", file, nil
		}
	}
	return why, nil, errors.Join(err, file.Close())
}

// head is the first line of a snapshot.
type head struct {
	Snapshot  int      `json:"snapshot"` // 1
	Begun     uint64   `json:"begun"`
	Tenants   []string `json:"tenants"`
	Tenants64 [][]byte `json:"tenants_base64"`
}

func readHead(line []byte) (h head, err error) {
	if err := json.Unmarshal(line, &h); err != nil || h.Snapshot != 1 || h.Begun == 0 {
		return h, fmt.Errorf("%w: its first line does not say when it was taken: it must be {\"snapshot\":1,\"begun\":OFFSET}, with the offset that `kvjournal reconcile --snapshot` prints before it waits for the file; what was taken before that may be older than the state it is compared with", ErrSnapshot)
	}
	return h, nil
}

// snapshotLine is an object, or the last line.
type snapshotLine struct {
	Backend64 *string   `json:"backend_id_base64"`
	Backend   *string   `json:"backend_id"`
	Tenant64  *string   `json:"tenant_id_base64"`
	Tenant    *string   `json:"tenant_id"`
	Key64     *string   `json:"object_key_base64"`
	Key       *string   `json:"object_key"`
	Media     *[]string `json:"media"`
	End       *int      `json:"end"`
}

// field is a field of bytes; nil where it is left out.
func field(text, encoded *string) ([]byte, error) {
	switch {
	case encoded != nil:
		b, err := base64.StdEncoding.DecodeString(*encoded)
		return append([]byte{}, b...), err
	case text != nil:
		return []byte(*text), nil
	}
	return nil, nil
}

// readSnapshot reads a snapshot into a plan for each tenant.
func (a *attempt) readSnapshot(ctx context.Context) error {
	a.progress(StepSnapshot, 0, 0)
	in, err := a.q.Snapshot.Open(ctx, a.h.Offset, func() error {
		now, err := a.r.o.Log.Stand(ctx)
		if err != nil {
			return err
		}
		return mayGoOn(&a.h, &now, a.backend)
	})
	if err != nil {
		return err
	}
	defer in.Close()
	line := 0
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: line %d: %s", ErrSnapshot, a.q.Snapshot.Name(), line, fmt.Sprintf(format, args...))
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), 128<<20)
	tenants := map[string]*plan{}
	ended := false
	for lines.Scan() {
		line++
		b := lines.Bytes()
		if line == 1 {
			h, err := readHead(b)
			if err != nil {
				return err
			}
			if h.Begun != a.h.Offset {
				return bad("it was taken for offset %d, this reading began at %d", h.Begun, a.h.Offset)
			}
			for _, t := range h.Tenants {
				a.tenant(tenants, []byte(t))
			}
			for _, t := range h.Tenants64 {
				a.tenant(tenants, t)
			}
			continue
		}
		if len(bytes.TrimSpace(b)) == 0 {
			continue
		}
		if ended {
			return bad("there is more behind the line that ends it")
		}
		if !utf8.Valid(b) {
			return bad("it is no UTF-8; give such keys as object_key_base64")
		}
		var s snapshotLine
		if err := json.Unmarshal(b, &s); err != nil {
			return bad("%v", err)
		}
		if s.End != nil {
			if *s.End != a.listed {
				return bad("it says that there are %d objects, there are %d", *s.End, a.listed)
			}
			ended = true
			continue
		}
		if err := a.snapshotObject(tenants, &s); err != nil {
			return bad("%v", err)
		}
		if a.listed++; a.listed%10_000 == 0 {
			a.progress(StepListing, a.listed, 0)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", a.q.Snapshot.Name(), err)
	}
	if !ended {
		return bad("it ends without {\"end\":N}, N being the number of objects: it was cut")
	}
	if len(tenants) == 0 {
		return bad("it names no tenant: an empty one must be named in the first line, as \"tenants\":[\"default\"]")
	}
	for _, p := range a.plans {
		if twice := p.list.Sort(); twice > 0 {
			return bad("%d objects of tenant %.40q come twice", twice, p.scope.Tenant)
		}
	}
	return nil
}

func (a *attempt) tenant(all map[string]*plan, tenant []byte) *plan {
	if len(tenant) == 0 {
		tenant = []byte(event.DefaultTenant)
	}
	p := all[string(tenant)]
	if p == nil {
		p = a.plan(reading.Scope{Backend: a.backend, Tenant: bytes.Clone(tenant)})
		p.whole = true
		all[string(tenant)] = p
	}
	return p
}

func (a *attempt) snapshotObject(all map[string]*plan, s *snapshotLine) error {
	backend, err := field(s.Backend, s.Backend64)
	if err == nil && backend != nil && !bytes.Equal(backend, a.backend) {
		err = fmt.Errorf("it is of the backend %.40q, the master is %.40q now", backend, a.backend)
	}
	if err != nil {
		return err
	}
	tenant, err := field(s.Tenant, s.Tenant64)
	if err != nil {
		return err
	}
	key, err := field(s.Key, s.Key64)
	if err != nil {
		return err
	}
	if len(key) == 0 || s.Media == nil {
		return errors.New("it has no object_key, or no media")
	}
	var w word
	for _, m := range *s.Media {
		switch m {
		case cpu:
			w |= onCPU
		case disk:
			w |= onDisk
		default:
			return fmt.Errorf("medium %.40q: a snapshot tells of cpu and disk, as the master's admin API does", m)
		}
	}
	a.tenant(all, tenant).list.Add(key, w)
	return nil
}
