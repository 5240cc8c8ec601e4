package mooncaketest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
)

var truthExample = Checkpoint{
	Checkpoint: 3, UnixMS: 1795985053289, Backend: `b"0`,
	Stats: Stats{PublishedBatches: 297, PublishedEvents: 1565, DroppedEvents: 2, SkippedKeylessEvents: 1},
	State: slices.Values([]Object{{"default", "k", true, false}, {"t", "\xff\xfe", true, true}, {"t", "d", false, true}}),
}

const truthExampleLine = `{"checkpoint":3,"unix_ms":1795985053289,"backend":"b\"0","published_batches":297,"published_events":1565,"dropped_events":2,"skipped_keyless_events":1,"state":[["ZGVmYXVsdA==","aw==","cpu"],["dA==","//4=","cpu,disk"],["dA==","ZA==","disk"]]}` + "\n"

func TestTruthFormat(t *testing.T) {
	var out bytes.Buffer
	w := NewTruthWriter(&out)
	empty := truthExample
	empty.State = slices.Values([]Object(nil))
	for _, c := range []Checkpoint{truthExample, empty} {
		if err := w.Write(c); err != nil {
			t.Fatal(err)
		}
	}
	got := bytes.SplitAfter(out.Bytes(), []byte("\n"))
	if string(got[0]) != truthExampleLine {
		t.Errorf("got  %swant %s", got[0], truthExampleLine)
	}
	if !bytes.HasSuffix(got[1], []byte(`"state":[]}`+"\n")) {
		t.Errorf("an empty store: %s", got[1])
	}
}

// Each line can be read as soon as it was written, compressed or not.
func TestTruthFileIsReadableBeforeItIsClosed(t *testing.T) {
	for _, name := range []string{"truth.jsonl", "truth.jsonl.zst"} {
		path := filepath.Join(t.TempDir(), name)
		w, err := CreateTruth(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 2; n++ {
			if err := w.Write(truthExample); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := raw
			if filepath.Ext(name) == ".zst" {
				d, err := zstd.NewReader(bytes.NewReader(raw))
				if err != nil {
					t.Fatal(err)
				}
				got = make([]byte, 2*n*len(truthExampleLine))
				read := 0
				for err == nil && read < n*len(truthExampleLine) {
					var k int
					k, err = d.Read(got[read:])
					read += k
				}
				got = got[:read]
				d.Close()
			}
			if want := bytes.Repeat([]byte(truthExampleLine), n); !bytes.Equal(got, want) {
				t.Errorf("%s after %d lines:\n%s", name, n, got)
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
