package query

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// randomQuestion is text that is a question, nearly one, or none.
func randomQuestion(r *rand.Rand) string {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	space := func() string { return pick("", "", "", " ", "\n\t", "\r ") }
	var b strings.Builder
	b.WriteString(space() + pick("{", "{", "{", "{", "{", "{", "{", "", "["))
	for i := range r.IntN(5) {
		if i > 0 {
			b.WriteString(pick(",", ",", ",", ",", ",", ",", ",", ",", "", ",,"))
		}
		name := pick("object_key", "object_key", "object_key", "object_key_base64", "tenant_id", "tenant_id_base64", "backend_id", "backend_id_base64", "source", "Object_Key", "x", "")
		value := pick(`"k"`, `"k2"`, `"a long key of many characters/0_k"`, `""`, `"aw=="`, `"aw"`, `"aGFsbG8="`, `"a\"b"`, `"\u0041"`, `"ü"`, "\"\xff\"", "\"\x7f\"", "\"a\nb\"", "null", "7", `"`)
		b.WriteString(space() + `"` + name + `"` + space() + pick(":", ":", ":", ":", ":", ":", "") + space() + value + space())
	}
	b.WriteString(pick("}", "}", "}", "}", "}", "}", "}", "", "]") + space() + pick("", "", "", "", "", "x", "{}"))
	return b.String()
}

// What the fast reader takes, encoding/json reads the same; what it does not take is encoding/json's.
func TestScanQuestion(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	scanned, read, refused := 0, 0, 0
	for range 30_000 {
		text := randomQuestion(r)
		want, werr := parseQuestion([]byte(text))
		got, gerr := ParseQuestion([]byte(text))
		if (werr == nil) != (gerr == nil) || werr != nil && werr.Error() != gerr.Error() || werr == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %q:\n%#v %v, want\n%#v %v", seed, text, got, gerr, want, werr)
		}
		if werr == nil {
			read++
		}
		if _, rest, ok := scanQuestion([]byte(text)); ok && len(skipSpace(rest)) == 0 {
			scanned++
		}

		only, oerr := ParseOnlyQuestion([]byte(text))
		if unknown := (*UnknownFieldsError)(nil); errors.As(oerr, &unknown) {
			if slices.Contains(unknown.Fields, "object_key") || !strings.Contains(text, `"`+unknown.Fields[0]+`"`) {
				t.Fatalf("seed %d: %q: %v", seed, text, oerr)
			}
		} else if (oerr == nil) != (werr == nil) || !reflect.DeepEqual(only, want) {
			t.Fatalf("seed %d: %q:\n%#v %v, want\n%#v %v", seed, text, only, oerr, want, werr)
		}
		array := text
		for range r.IntN(3) {
			array += "," + randomQuestion(r)
		}
		array = " [" + array + "]"[r.IntN(2)*r.IntN(2):] + " "
		var wants []Question
		werr = json.Unmarshal([]byte(array), &wants)
		gots, gerr := ParseOnlyQuestions([]byte(array))
		if unknown := (*UnknownFieldsError)(nil); errors.As(gerr, &unknown) {
			if !strings.Contains(array, `"x"`) && !strings.Contains(array, `""`) {
				t.Fatalf("seed %d: %q: %v", seed, array, gerr)
			}
			refused++
			continue
		}
		if (werr == nil) != (gerr == nil) || werr != nil && werr.Error() != gerr.Error() || werr == nil && !reflect.DeepEqual(gots, wants) {
			t.Fatalf("seed %d: %q:\n%#v %v, want\n%#v %v", seed, array, gots, gerr, wants, werr)
		}
	}
	if refused < 100 {
		t.Errorf("seed %d: %d arrays with unknown fields were refused: they are to be many", seed, refused)
	}
	if scanned < 100 || read < scanned+100 {
		t.Errorf("seed %d: of %d questions %d were read fast: both kinds are to be many", seed, read, scanned)
	}
}

// Moments are written as package time writes them.
func TestAppendMoment(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 20_000 {
		ms := r.Int64N(lastMs-firstMs+1) + firstMs
		switch i {
		case 0:
			ms = firstMs
		case 1:
			ms = lastMs
		}
		if got, want := string(appendMoment(nil, ms)), time.UnixMilli(ms).UTC().Format(timeLayout); got != want {
			t.Fatalf("seed %d: %d ms: %s, want %s", seed, ms, got, want)
		}
	}
}
