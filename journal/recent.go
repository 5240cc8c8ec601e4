package journal

import "sync"

// recent keeps what was asked for lately, up to about a size, in two generations: values move to the young one when they are asked for, and
// the old one is thrown away when the young one has half of the size.
type recent[K comparable, V any] struct {
	mu         sync.Mutex
	half       int
	size       int // of young
	young, old map[K]sized[V]
}

type sized[V any] struct {
	value V
	size  int
}

// newRecent keeps values of that size together, in the unit of put.
func newRecent[K comparable, V any](size int) *recent[K, V] {
	return &recent[K, V]{half: size / 2, young: map[K]sized[V]{}}
}

func (r *recent[K, V]) get(key K) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok := r.young[key]; ok {
		return v.value, true
	}
	v, ok := r.old[key]
	if ok {
		r.set(key, v)
	}
	return v.value, ok
}

func (r *recent[K, V]) put(key K, value V, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(key, sized[V]{value, size})
}

func (r *recent[K, V]) set(key K, v sized[V]) {
	if v.size > r.half {
		return
	}
	if r.size+v.size > r.half {
		r.young, r.old = r.old, r.young
		clear(r.young)
		r.size = 0
	}
	if r.young == nil {
		r.young = map[K]sized[V]{}
	}
	r.young[key] = v
	r.size += v.size
}
