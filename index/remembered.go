package index

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// remembered is what questions found in the keyspaces of which few writes change a row: what the rows begin with, marks, flagged epochs, the newest
// clears and proofs, backends. In most databases there is none, or it lies deep, and to find that out takes a look into each table of L0. So it is
// kept from state to state, for as long as no write changes a row of its keyspace.
//
// # Why it never answers with what was
//
// A memo is shared by those states alone between which no write changed its keyspace: begin puts an empty one in its place for the states behind
// the write, and a state takes the memos that stand there only if no write was under way or began since before its snapshot (fresh.open); else
// it has its own. So whoever of them fills it, it is so in all.
type remembered struct {
	bases  *memo[struct{}, Base]
	marks  *memo[uint32, found[Mark]]
	flags  *memo[uint32, map[uint64]bool]
	clears *memo[string, found[Evidence]] // by keyspace and scope
	known  *memo[string, [][]byte]        // backends, by source and tenant
}

// found is a row that was looked for; has is false where there is none.
type found[T any] struct {
	row T
	has bool
}

// maxFound bounds what is remembered of each kind: sources, scopes, tenants; and maxName the bytes of a name, or of a list of them. What is
// more is read each time.
const (
	maxFound = 1024
	maxName  = 1 << 10
)

// behind is what may still be taken behind a write that changes rows of these keyspaces.
func (r remembered) behind(changed keyspaces) remembered {
	keep(&r.bases, changed.has(keyBaseline))
	keep(&r.marks, changed.has(keyMark))
	keep(&r.flags, changed.has(keySilent))
	keep(&r.clears, changed.has(keyClear) || changed.has(keyProof))
	keep(&r.known, changed.has(keyScope))
	return r
}

// keep puts an empty memo in m's place where its keyspace is changed.
func keep[K comparable, V any](m **memo[K, V], changed bool) {
	if changed || *m == nil {
		*m = &memo[K, V]{}
	}
}

// readBase is what the rows begin with.
func (s *state) readBase() (Base, error) {
	return s.bases.find(struct{}{}, func() (Base, bool, error) {
		b, err := readBaseline(s.snap)
		return b, true, err
	})
}

// memo keeps what was found under a key.
type memo[K comparable, V any] struct {
	mu   sync.Mutex
	kept map[K]V
}

func (m *memo[K, V]) get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.kept[key]
	return v, ok
}

// getNamed is get where the key is at hand as bytes: it allocates nothing.
func getNamed[V any](m *memo[string, V], key []byte) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.kept[string(key)]
	return v, ok
}

// find returns what is kept under key, or finds it and keeps it, if it is small. What it returns is shared: nobody changes it.
func (m *memo[K, V]) find(key K, find func() (v V, small bool, err error)) (V, error) {
	if v, ok := m.get(key); ok {
		return v, nil
	}
	v, small, err := find()
	if err != nil || !small {
		return v, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[K]V{}
	}
	if len(m.kept) < maxFound {
		m.kept[key] = v
	}
	return v, nil
}

// keyspaces are a set of them.
type keyspaces uint32

const allKeyspaces = ^keyspaces(0)

func (s *keyspaces) add(space byte) { *s |= 1 << (space - 'a') }

func (s keyspaces) has(space byte) bool { return s&(1<<(space-'a')) != 0 }

// noted writes to a batch, and notes of which keyspaces.
type noted struct {
	*pebble.Batch
	changed keyspaces
}

func (n *noted) Set(key, value []byte, o *pebble.WriteOptions) error {
	n.changed.add(key[0])
	return n.Batch.Set(key, value, o)
}

func (n *noted) Delete(key []byte, o *pebble.WriteOptions) error {
	n.changed.add(key[0])
	return n.Batch.Delete(key, o)
}
