package mooncaketest

// DefaultShards is the number of shards of a real master's metadata; its listing locks them one by one
// (spec/master-admin.md, "Sizes").
const DefaultShards = 1024

// directory finds a store's objects by key, as the admin API asks for them: those that are live and those whose put has
// begun and not ended. It is a plain list for each shard, so that its order depends on nothing but what was done to it; a
// lookup compares the hashes of one shard.
type directory struct {
	shards [][]slot
}

// slot costs 16 bytes an object.
type slot struct {
	object *object
	hash   uint32
}

func newDirectory(shards int) *directory { return &directory{make([][]slot, shards)} }

// hashKey is FNV-1a.
func hashKey(key string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 0x100000001b3
	}
	return h
}

// shard is the place of a key, and what its slot remembers of the hash. FNV's low bits are the better ones.
func (d *directory) shard(key string) (shard *[]slot, hash uint32) {
	h := hashKey(key)
	h ^= h >> 32
	return &d.shards[h%uint64(len(d.shards))], uint32(h)
}

// add makes an object known, if it is not.
func (d *directory) add(o *object) {
	if o.slot > 0 {
		return
	}
	shard, hash := d.shard(o.name.key())
	*shard = append(*shard, slot{o, hash})
	o.slot = uint32(len(*shard))
}

// remove forgets an object, if it is known.
func (d *directory) remove(o *object) {
	if o.slot == 0 {
		return
	}
	shard, _ := d.shard(o.name.key())
	last := len(*shard) - 1
	moved := (*shard)[last]
	(*shard)[o.slot-1], moved.object.slot = moved, o.slot
	(*shard)[last] = slot{}
	*shard = (*shard)[:last]
	o.slot = 0
}

// find returns the object of this key, nil if there is none.
func (d *directory) find(tenant uint32, key string) *object {
	shard, hash := d.shard(key)
	for _, s := range *shard {
		if s.hash == hash && s.object.tenant == tenant && s.object.name.key() == key {
			return s.object
		}
	}
	return nil
}

// appendKeys appends the keys of one tenant in one shard, each with a newline behind it.
func (d *directory) appendKeys(dst []byte, shard int, tenant uint32) []byte {
	for _, s := range d.shards[shard] {
		if s.object.tenant == tenant {
			dst = append(append(dst, s.object.name.key()...), '\n')
		}
	}
	return dst
}
