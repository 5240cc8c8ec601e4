package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/continuity"
)

// Source is a publisher as configured.
type Source struct {
	// ID is short and stands in every record; 1, 2, … in the order of first use.
	ID   uint32 `json:"id"`
	Name string `json:"name"`
	// Endpoints are the ZMQ addresses of the masters of one HA group; empty for an import.
	Endpoints []string `json:"endpoints,omitempty"`
	// Seen are all endpoints that were ever configured, in the order of their first use: an endpoint's place in it is its number.
	Seen []string `json:"seen,omitempty"`
	// Masters are the admin URLs, if given: as many as Endpoints, each that of the endpoint in its place.
	Masters []string `json:"masters,omitempty"`
	// Created is when the journal first heard of it.
	Created time.Time `json:"created"`
}

// Number is the number of an endpoint, which it keeps; -1 where it was never configured.
func (s *Source) Number(endpoint string) int { return slices.Index(s.Seen, endpoint) }

func (j *Journal) loadSources() error {
	return j.scan(keySource, func(k, v []byte) error {
		var s Source
		if err := json.Unmarshal(v, &s); err != nil || s.ID == 0 {
			return &CorruptError{What: fmt.Sprintf("source row %x does not decode", k)}
		}
		j.sources[s.ID] = s
		return nil
	})
}

// scan calls f for each row of a family, in order.
func (j *Journal) scan(family byte, f func(k, v []byte) error) error {
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: []byte{family}, UpperBound: []byte{family + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := f(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return readError(0, it.Error())
}

// Sources lists the sources by id.
func (j *Journal) Sources() []Source {
	j.sourcesMu.RLock()
	defer j.sourcesMu.RUnlock()
	out := make([]Source, 0, len(j.sources))
	for _, s := range j.sources {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Source) int { return int(a.ID) - int(b.ID) })
	return out
}

// SourceNamed finds a source by its name.
func (j *Journal) SourceNamed(name string) (Source, bool) {
	j.sourcesMu.RLock()
	defer j.sourcesMu.RUnlock()
	for _, s := range j.sources {
		if s.Name == name {
			return s, true
		}
	}
	return Source{}, false
}

// EnsureSource returns the source of that name, making it if it is new and keeping the endpoints and masters if they are given
// and differ. What it wrote is durable on return. Which sources there are, and which have a master, outlives the loss of the log's end: that
// lies in a table, and the head file tells of it.
func (j *Journal) EnsureSource(name string, endpoints, masters []string) (Source, error) {
	if name == "" {
		return Source{}, errors.New("a source needs a name")
	}
	was, known := j.SourceNamed(name)
	s := was
	same := (endpoints == nil || slices.Equal(s.Endpoints, endpoints)) && (masters == nil || slices.Equal(s.Masters, masters))
	if known && same {
		return s, nil
	}
	if !known {
		s = Source{ID: 1, Name: name, Created: time.Now().UTC()}
		for _, o := range j.Sources() {
			s.ID = max(s.ID, o.ID+1)
		}
	}
	if endpoints != nil {
		s.Endpoints = endpoints
		for _, e := range endpoints {
			if !slices.Contains(s.Seen, e) {
				s.Seen = append(slices.Clone(s.Seen), e)
			}
		}
	}
	if masters != nil {
		s.Masters = masters
	}
	v, err := json.Marshal(s)
	if err != nil {
		return Source{}, err
	}
	if err := j.failed(); err != nil {
		return Source{}, err
	}
	if err := j.db.Set(sourceKey(keySource, s.ID), v, pebble.Sync); err != nil {
		return Source{}, fmt.Errorf("keeping source %q: %w", name, err)
	}
	before := sumOf(j.Sources())
	j.setSource(s.ID, s)
	if sumOf(j.Sources()) == before {
		return s, nil
	}
	err = j.Flush()
	if err == nil {
		err = j.writeHead()
	}
	if err == nil && !known {
		err = j.tellNew(s.ID)
	}
	if err != nil {
		j.setSource(s.ID, was)
		return Source{}, fmt.Errorf("keeping source %q: %w", name, err)
	}
	return s, nil
}

// setSource has s be the source of that id, or, where s is the zero Source, none.
func (j *Journal) setSource(id uint32, s Source) {
	j.sourcesMu.Lock()
	defer j.sourcesMu.Unlock()
	if s.ID == 0 {
		delete(j.sources, id)
		return
	}
	j.sources[id] = s
	if j.clocks[id] == nil {
		j.clocks[id] = &clock{}
	}
}

// Position is where a source stands: what a recorder needs to go on with it.
type Position struct {
	// Last is the offset of the source's newest message, 0: none.
	Last uint64
	// State is the continuity state behind Last, its last frames included.
	State continuity.State
}

func (p *Position) encode() []byte {
	return p.State.AppendBinary(binary.BigEndian.AppendUint64(nil, p.Last))
}

// Position returns where the source stands. Of a source never recorded it is the zero Position.
func (j *Journal) Position(source uint32) (Position, error) {
	p, err := j.position(source)
	if err != nil || p.Last == 0 {
		return p, err
	}
	b, err := j.blockAt(nil, p.Last)
	if err != nil {
		return Position{}, err
	}
	if p.Last > b.Last() {
		return Position{}, &CorruptError{Offset: p.Last, What: "the newest message of a source is gone"}
	}
	frames, err := b.Frames(int(p.Last-b.First), nil, new([8]byte))
	if err != nil {
		return Position{}, err
	}
	p.State.SetLast(frames)
	return p, nil
}

// position is Position without the last frames.
func (j *Journal) position(source uint32) (Position, error) {
	v, err := j.get(sourceKey(keyState, source))
	if errors.Is(err, ErrNotFound) {
		return Position{}, nil
	}
	if err != nil {
		return Position{}, err
	}
	p, err := decodePosition(v)
	if err != nil {
		return Position{}, err
	}
	return p, nil
}

// decodePosition reads a row of family c; the last message's frames are not in it.
func decodePosition(v []byte) (Position, error) {
	if len(v) < 8 {
		return Position{}, &CorruptError{What: "state of a source is too short"}
	}
	p := Position{Last: binary.BigEndian.Uint64(v)}
	var err error
	if p.State, err = continuity.DecodeState(v[8:]); errors.Is(err, continuity.ErrNewerState) {
		return Position{}, newer(p.Last, "a state of its source with parts that this program does not know")
	}
	if err != nil {
		return Position{}, &CorruptError{What: err.Error()}
	}
	return p, nil
}

// Import tells of one capture that was taken into a source.
type Import struct {
	// SHA256 of the capture's decompressed bytes, hex.
	SHA256 string `json:"sha256"`
	Path   string `json:"path"`
	// Records is how many of the capture's records are in the journal, Total how many it has: fewer if the
	// import was interrupted.
	Records int `json:"records"`
	Total   int `json:"total"`
	// First and Last are offsets.
	First uint64 `json:"first_offset"`
	Last  uint64 `json:"last_offset"`
}

func importKey(source uint32, sum string) []byte {
	return append(sourceKey(keyImport, source), sum...)
}

// ImportOf returns what is known of a capture in a source; ErrNotFound where it was never imported.
func (j *Journal) ImportOf(source uint32, sum string) (Import, error) {
	v, err := j.get(importKey(source, sum))
	if err != nil {
		return Import{}, err
	}
	var i Import
	if err := json.Unmarshal(v, &i); err != nil {
		return Import{}, &CorruptError{What: "import row does not decode"}
	}
	return i, nil
}
