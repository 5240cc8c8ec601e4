package query

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

var whyRewrite = flag.Bool("why.rewrite", false, "write testdata/why.txt anew")

// doubtCauses are all causes that a doubt can have: those of continuity, and the Doubt constants of this package's source.
func doubtCauses(t *testing.T) []string {
	t.Helper()
	var out []string
	for c := continuity.CauseNone + 1; !strings.HasPrefix(c.String(), "cause_"); c++ {
		out = append(out, c.String())
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, id := range v.Names {
				if len(id.Name) > 5 && strings.HasPrefix(id.Name, "Doubt") && i < len(v.Values) {
					s, err := strconv.Unquote(v.Values[i].(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, s)
					constants++
				}
			}
			return true
		})
	}
	if constants < 9 || len(out) < 21 {
		t.Fatalf("found only %d constants, %q", constants, out)
	}
	return out
}

// TestWhyCauses: every cause of doubt has its sentence, and a story with it says what happened and what else may be so.
func TestWhyCauses(t *testing.T) {
	for _, cause := range doubtCauses(t) {
		text, ok := causeTexts[cause]
		if !ok || text.what == "" || !strings.HasSuffix(text.what, ".") || text.present == "" && text.absent == "" {
			t.Errorf("cause %q has no sentence in causeTexts: %+v", cause, text)
			continue
		}
		f := someFacts()
		state := Absent
		if text.absent == "" {
			state = Present
		}
		f.answer.Media["cpu"] = MediumOut{State: state, Certainty: Uncertain, Doubt: &Doubt{Cause: cause, Offset: 9}}
		w := tellWhy(f)
		if !slices.ContainsFunc(w.Story, func(l WhyLine) bool {
			return strings.Contains(l.Text, lower(text.what)) || strings.Contains(l.Text, text.what)
		}) {
			t.Errorf("%s: the story does not tell it: %+v", cause, w.Story)
		}
		if len(w.WrongIf) == 0 || !strings.HasPrefix(w.WrongIf[0], "cpu: it may be ") {
			t.Errorf("%s: what else may be so: %q", cause, w.WrongIf)
		}
		if text.do != "" && !slices.ContainsFunc(w.Next, func(n WhyNext) bool { return n.Text == text.do }) {
			t.Errorf("%s: next: %+v", cause, w.Next)
		}
	}
	for cause := range causeTexts {
		if !slices.Contains(doubtCauses(t), cause) {
			t.Errorf("causeTexts has %q, which is no cause", cause)
		}
	}
}

const whyTime = 1_795_985_000_000

func someEvidence(offset uint64, stored bool) *index.Evidence {
	return &index.Evidence{Position: index.Position{Offset: offset, Event: 2}, Stored: stored, Epoch: 1, Seq: offset - 1, HasID: true, ID: 10 * offset, HasTime: true, Time: whyTime + int64(offset)*1000, Received: whyTime + int64(offset)*1000 + 3}
}

// someFacts are of an object that was stored at offset 5, asked for at offset 20.
func someFacts() *whyFacts {
	first := &index.Event{Medium: "cpu", Evidence: *someEvidence(5, true)}
	f := &whyFacts{
		name: Name{Source: "s", Backend: Bytes("b"), Tenant: Bytes("t 1"), Key: Bytes("k\xff")}, when: When{Kind: AtOffset, Offset: 20}, seen: true, first: first,
		answer: &Answer{Media: map[string]MediumOut{}, AsOf: AsOf{Offset: 20, Time: msTime(whyTime + 20_000)}},
	}
	f.m, f.behindMoment = moment{at: index.Behind(20)}, 21
	f.answer.Certainty = Uncertain
	return f
}

// decided puts media into facts as judged by the rules.
func (f *whyFacts) decided(media ...whyMedium) *whyFacts {
	f.answer = &Answer{Media: map[string]MediumOut{}, AsOf: f.answer.AsOf}
	f.media = nil
	for _, m := range media {
		m.decision = decide(&f.m, m.newest, &f.clears, false)
		f.answer.Media[m.name] = m.out(&f.m)
		f.media = append(f.media, m)
	}
	f.answer.summarize()
	return f
}

// TestTellWhy holds whole stories against testdata/why.txt.
func TestTellWhy(t *testing.T) {
	var b strings.Builder
	tell := func(name string, f *whyFacts) {
		fmt.Fprintf(&b, "== %s\n", name)
		w := tellWhy(f)
		for _, l := range w.Story {
			fmt.Fprintf(&b, "%d: %s\n", l.Offset, l.Text)
		}
		for _, s := range w.WrongIf {
			fmt.Fprintf(&b, "? %s\n", s)
		}
		for _, n := range w.Next {
			fmt.Fprintf(&b, "> %s\n", n.Text)
			if n.Command != "" {
				fmt.Fprintf(&b, "  %s\n", n.Command)
			}
		}
		b.WriteByte('\n')
	}
	stored := whyMedium{name: "cpu", newest: someEvidence(5, true), stored: someEvidence(5, true)}
	nothing := whyMedium{name: "disk"}
	tell("stored, nothing lost", someFacts().decided(stored, nothing))

	f := someFacts()
	f.next = &index.Event{Medium: "cpu", Evidence: *someEvidence(25, true)}
	tell("evicted with a copy left, stored again later", f.decided(
		whyMedium{name: "cpu", newest: someEvidence(8, false), stored: someEvidence(5, true), removed: someEvidence(8, false), left: []string{"disk"}},
		whyMedium{name: "disk", newest: someEvidence(6, true), stored: someEvidence(6, true)}))

	f = someFacts()
	f.next = &index.Event{Medium: "cpu", Evidence: *someEvidence(22, false)}
	f.stored = &index.Event{Medium: "disk", Evidence: *someEvidence(30, true)}
	tell("removed twice, the last copy", f.decided(
		whyMedium{name: "cpu", newest: someEvidence(9, false), stored: someEvidence(5, true), removed: someEvidence(8, false)}, nothing))

	f = someFacts()
	f.clears.newest, f.clears.hasNewest = *someEvidence(7, false), true
	f.clears.proof, f.clears.hasProof = f.clears.newest, true
	tell("stored, then cleared", f.decided(stored, nothing))

	f = someFacts()
	f.m.mark, f.m.hasMark = index.Mark{From: 10, End: index.Behind(12), Cause: continuity.Transport}, true
	missing, least, most := uint64(3), uint64(70), uint64(130)
	firstSeq, lastSeq := uint64(9), uint64(11)
	f.mark = &MarkOut{Cause: "transport", Shadow: true, ExtendsTo: &MarkEnd{Offset: 12}, Losses: 2, Gap: &GapOut{Cause: "transport", FirstMissingSeq: &firstSeq, LastMissingSeq: &lastSeq, MissingSeqs: &missing, LostEventsMin: &least, LostEventsMax: &most}}
	f.markAt = WhyLine{Offset: 10, Time: msTime(whyTime + 10_000)}
	f.before = 9
	tell("in the shadow of a loss", f.decided(whyMedium{name: "cpu", newest: someEvidence(12, true), stored: someEvidence(12, true)}, nothing))
	tell("behind a loss, confirmed", f.decided(whyMedium{name: "cpu", newest: someEvidence(13, true), stored: someEvidence(13, true)}, nothing))

	for _, m := range []index.Mark{{From: 9, Cause: continuity.PublisherQueue}, {From: 8, Cause: continuity.PublisherRestart, HasTime: true, Time: whyTime + 8000}, {From: 6, Cause: continuity.PublisherQueue}} {
		f.older.add(&m)
	}
	tell("behind losses, a restart among them", f.decided(stored, nothing))

	f = someFacts()
	f.when = When{Kind: AtTime, Ms: whyTime + 20_500}
	f.m.unproven = &Doubt{Cause: "publisher_queue", Offset: 21}
	lost := uint64(3)
	f.nextGap = &GapOut{Cause: "publisher_queue", FirstMissingSeq: &firstSeq, LastMissingSeq: &lastSeq, LostEvents: &lost, FirstOffsetAfter: 21}
	f.nextMark = &index.Mark{From: 21, Cause: continuity.PublisherQueue}
	tell("directly before a loss", f.decided(stored, nothing))

	f = someFacts()
	f.seen, f.first = false, nil
	f.elsewhere = []Name{{Source: "s", Backend: Bytes("b"), Tenant: Bytes("it's"), Key: Bytes("k")}, {Source: "s", Backend: Bytes("\xff'"), Tenant: Bytes("t"), Key: Bytes("-k")}}
	tell("never seen", f.decided(whyMedium{name: "cpu"}, nothing))

	f = someFacts()
	f.m.at = index.Behind(3)
	f.answer.AsOf.Offset, f.behindMoment = 3, 4
	f.next = f.first
	tell("before its first event", f.decided(whyMedium{name: "cpu"}, nothing))

	const path = "testdata/why.txt"
	if *whyRewrite {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != b.String() {
		t.Errorf("%v; the stories are not those of %s (write it anew with -why.rewrite and read the difference):\n%s", err, path, b.String())
	}
}

// TestWhyModel: on random streams the story's answer is lookup's, and every doubt of it is told.
func TestWhyModel(t *testing.T) {
	stories, doubts := 0, map[string]int{}
	for n := range *modelStreams {
		seed := *modelSeed + uint64(n)
		r := &recorded{t: t, rng: rand.New(rand.NewPCG(seed, 7)), stream: oracle.Generate(seed, oracle.Options{}), oracle: oracle.New(), fs: vfs.NewMem()}
		r.record()
		times := r.oracle.Times()
		objects := append(r.oracle.Objects(), oracle.Object{Backend: "b0", Tenant: "default", Key: "never"})
		for range 30 {
			w := When{Kind: AtOffset, Offset: 1 + r.rng.Uint64N(uint64(len(r.stream.Records)))}
			switch {
			case r.rng.IntN(8) == 0:
				w = When{Kind: WhenKind(r.rng.IntN(2))} // Latest or Now
			case len(times) > 0 && r.rng.IntN(2) == 0:
				w = When{Kind: AtTime, Ms: times[r.rng.IntN(len(times))]}
			}
			name := r.name(objects[r.rng.IntN(len(objects))])
			answers, err := r.e.Lookup(t.Context(), []Question{{name}}, w)
			r.must(err)
			told := 0
			r.must(r.e.Why(t.Context(), name, w, func(story *WhyOut) error {
				told++
				b, err := json.Marshal(story)
				r.must(err)
				var back WhyOut
				r.must(json.Unmarshal(b, &back))
				for _, a := range []*Answer{answers[0], back.Answer} {
					a.AsOf.AgeMs = nil
				}
				got, _ := json.Marshal(back.Answer)
				want, _ := json.Marshal(answers[0])
				if string(got) != string(want) {
					t.Fatalf("seed %d: %q at %+v:\n%s\nlookup says\n%s", seed, name.Key, w, got, want)
				}
				r.told(&back, doubts)
				return nil
			}))
			if told != 1 {
				t.Fatalf("seed %d: %q at %+v: %d stories", seed, name.Key, w, told)
			}
			stories++
		}
		r.close()
	}
	t.Logf("%d stories, doubts %v", stories, doubts)
	for _, cause := range []string{"publisher_queue", "transport", "publisher_restart", "damaged", "reconnect", "disconnected", DoubtCleared, DoubtNoEvidence, DoubtFullBatch, DoubtBehindLast, DoubtBeforeFirst, DoubtClock, DoubtWindow, DoubtNow} {
		if doubts[cause] == 0 && *modelStreams >= 60 {
			t.Errorf("no story with the doubt %s", cause)
		}
	}
}

// told checks that a story tells every doubt, and what else may be so.
func (r *recorded) told(w *WhyOut, doubts map[string]int) {
	all := ""
	for _, l := range w.Story {
		all += l.Text + "\n"
	}
	for name, m := range w.Answer.Media {
		if m.Doubt == nil {
			continue
		}
		doubts[m.Doubt.Cause]++
		text := causeTexts[m.Doubt.Cause].what
		if !strings.Contains(all, text) && !strings.Contains(all, lower(text)) {
			r.t.Fatalf("seed %d: %s is not told:\n%s", r.stream.Seed, m.Doubt.Cause, all)
		}
		if !slices.ContainsFunc(w.WrongIf, func(s string) bool { return strings.HasPrefix(s, name+": it may be ") }) {
			r.t.Fatalf("seed %d: %s is uncertain by %s, but what else may be so is not told: %q", r.stream.Seed, name, m.Doubt.Cause, w.WrongIf)
		}
	}
	if len(w.Story) < 2 || len(w.Next) == 0 || len(w.WrongIf) == 0 || strings.Contains(all, "%!") || strings.Contains(all, "  ") {
		r.t.Fatalf("seed %d: %+v\n%s", r.stream.Seed, w, all)
	}
}
