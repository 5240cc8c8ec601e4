package mooncaketest

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
)

// steps makes n events or a few more.
func steps(s *Store, n int) (changes []Change) {
	for len(changes) < n {
		changes = s.Step(changes)
	}
	return changes
}

func TestStoreSameSeedSameChanges(t *testing.T) {
	o := StoreOptions{Seed: 7, Tenants: 3, Objects: 500, ClearEvery: 1000}
	a, b := steps(NewStore(o), 20_000), steps(NewStore(o), 20_000)
	if len(a) != len(b) {
		t.Fatalf("%d and %d changes", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("change %d: %v and %v", i, a[i], b[i])
		}
	}
	o.Seed = 8
	if c := steps(NewStore(o), 100); c[0] == a[0] {
		t.Error("another seed gave the same first change")
	}
}

// The events alone, applied to a set, must give the state that the store itself keeps, at every moment between steps.
func TestStoreReplayGivesItsState(t *testing.T) {
	for seed := range uint64(5) {
		s := NewStore(StoreOptions{Seed: seed, Tenants: 3, Objects: 300, ClearEvery: 500})
		replayed := state{}
		clears := 0
		for i := range 5_000 {
			step := s.Step(nil)
			if len(step) == 0 {
				t.Fatalf("seed %d: step %d did nothing", seed, i)
			}
			replayed.apply(step...)
			if step[0].Type == event.Cleared {
				clears++
			}
			if i%50 == 0 || step[0].Type == event.Cleared {
				if truth := stateOf(s); !maps.Equal(truth, replayed) {
					t.Fatalf("seed %d, step %d: %d rows in the store, %d replayed", seed, i, len(truth), len(replayed))
				}
			}
		}
		if clears == 0 {
			t.Errorf("seed %d: no remove-all", seed)
		}
	}
}

func TestStoreKeepsItsSize(t *testing.T) {
	const target = 2_000
	s := NewStore(StoreOptions{Seed: 1, Objects: target})
	steps(s, 20*target)
	puts := 0
	changes := steps(s, 100_000)
	for _, c := range changes {
		if c.Type == event.Stored && c.Medium == CPU {
			puts++
		}
		if c.Type == event.Cleared {
			t.Fatal("a remove-all though ClearEvery is 0")
		}
	}
	if n := s.Live(); n < target*95/100 || n > target*105/100 {
		t.Errorf("%d live objects, want about %d", n, target)
	}
	if perPut := float64(len(changes)) / float64(puts); perPut < 3 || perPut > 5 {
		t.Errorf("%.1f events for each put, want about 4", perPut)
	}
}

// A remove-all sends each object's removed, then cleared, in the last tenant only and never for an empty one.
func TestStoreRemoveAll(t *testing.T) {
	s := NewStore(StoreOptions{Seed: 3, Tenants: 2, Objects: 1_000, ClearEvery: 2_000})
	replayed := state{}
	clears := 0
	var before Change
	for range 50_000 {
		step := s.Step(nil)
		if step[0].Type == event.Cleared {
			clears++
			if step[0].Tenant != "tenant-1" || step[0].Key != "" || step[0].Medium != "" {
				t.Fatalf("cleared: %v", step[0])
			}
			if before.Type != event.Removed || before.Tenant != "tenant-1" {
				t.Fatalf("before cleared came %v", before)
			}
			for p := range replayed {
				if p.tenant == "tenant-1" {
					t.Fatalf("%v was not removed before cleared", p)
				}
			}
		}
		replayed.apply(step...)
		before = step[len(step)-1]
	}
	if clears < 3 {
		t.Errorf("%d remove-alls", clears)
	}
}

// With RacyClears objects live on that the stream says are gone, as on real masters.
func TestStoreRacyClears(t *testing.T) {
	s := NewStore(StoreOptions{Seed: 3, Tenants: 2, Objects: 1_000, ClearEvery: 500, RacyClears: true})
	replayed := state{}
	for range 100_000 {
		step := s.Step(nil)
		replayed.apply(step...)
		if last := step[len(step)-1]; last.Type == event.Cleared {
			if len(step) < 2 || step[0].Type != event.Stored {
				t.Fatalf("nothing was stored before cleared: %v", step)
			}
			survivor := place{step[0].Tenant, step[0].Key, step[0].Medium}
			if survivor.tenant != last.Tenant || replayed[survivor] || !stateOf(s)[survivor] {
				t.Fatalf("%v does not live on unannounced", survivor)
			}
			return
		}
	}
	t.Fatal("no remove-all")
}

func TestStoreClearsOnly(t *testing.T) {
	s := NewStore(StoreOptions{Seed: 1, Objects: 1_000, ClearEvery: 100, ClearsOnly: true})
	clears := 0
	for _, c := range steps(s, 20_000) {
		if c.Type == event.Cleared {
			clears++
		}
	}
	if clears < 10 {
		t.Errorf("%d clears in a lone tenant", clears)
	}
}

// Every kind of life must come up, and upserts and evictions with a copy must be one step.
func TestStoreKindsOfChange(t *testing.T) {
	s := NewStore(StoreOptions{Seed: 1, Tenants: 4, Objects: 500})
	kinds := map[string]int{}
	tenants := map[string]bool{}
	keyForm := regexp.MustCompile(`^([0-9a-f]{64}(_0_k)?|kv-prod@deepseek-v3@tp_rank:[0-7]@pcp0@dcp0@pp_rank:0@group:0@[0-9a-f]{64})$`)
	forms := map[int]bool{}
	for range 50_000 {
		var kind strings.Builder
		for _, c := range s.Step(nil) {
			kind.WriteString(map[event.Type]string{event.Stored: "+", event.Removed: "-"}[c.Type] + c.Medium)
			tenants[c.Tenant] = true
			forms[len(c.Key)] = true
			if !keyForm.MatchString(c.Key) {
				t.Fatalf("key %q", c.Key)
			}
			if c.Group != "" && (c.Group != "sglang-hicache:"+c.Key[:40] || c.Type != event.Stored || c.Medium != CPU) {
				t.Fatalf("group of %v", c)
			}
		}
		kinds[kind.String()]++
	}
	for _, kind := range []string{"+cpu", "+disk", "-cpu", "-disk", "-cpu+cpu", "-cpu-disk+cpu", "-disk+cpu", "+disk-cpu", "-cpu-disk", "-cpu-cpu"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s among %v", kind, kinds)
		}
	}
	if len(tenants) != 4 || !tenants["default"] || !tenants["tenant-3"] {
		t.Errorf("tenants %v", tenants)
	}
	if len(forms) != 3 {
		t.Errorf("lengths of keys: %v", forms)
	}
}
