package httpapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/query"
)

// TestProblemKinds: what a question may end with has the status of its kind, and openapi.yaml names each kind.
func TestProblemKinds(t *testing.T) {
	for _, c := range []struct {
		err    error
		kind   string
		status int
	}{
		{&query.UsageError{Message: "?"}, ProblemUsage, 400},
		{fmt.Errorf("looking: %w", &query.PrunedError{}), ProblemPruned, 410},
		{fmt.Errorf("looking: %w", &query.LostError{}), ProblemLost, 410},
		{&mediaError{}, ProblemMedia, 415},
		{journal.ErrNotFound, ProblemFailed, 500},
		{context.DeadlineExceeded, ProblemTimeout, 504},
	} {
		if kind := problemOf(c.err); kind != c.kind || problems[kind].status != c.status {
			t.Errorf("%T: %s, %d", c.err, kind, problems[kind].status)
		}
	}
	var named []string
	for _, word := range strings.Fields(string(OpenAPI)) {
		if kind, ok := strings.CutPrefix(word, problemType); ok {
			named = append(named, kind)
			if _, ok := problems[kind]; !ok {
				t.Errorf("openapi.yaml names %s, which there is not", kind)
			}
		}
	}
	for kind := range problems {
		if !slices.Contains(named, kind) {
			t.Errorf("openapi.yaml does not name %s", kind)
		}
	}
}
