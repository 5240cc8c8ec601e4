package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/near"
)

// unknownTold is how many names that there are not are told.
const unknownTold = 3

// checkNames refuses parameters that are none of known, and those that were given more than once: what is not understood is never ignored.
func checkNames(values url.Values, known []string) error {
	var unknown, twice []string
	for name, v := range values {
		switch {
		case !slices.Contains(known, name):
			unknown = append(unknown, name)
		case len(v) > 1:
			twice = append(twice, name)
		}
	}
	if len(unknown) > 0 {
		return &query.UsageError{Message: unknownText("parameter", unknown, known)}
	}
	if len(twice) > 0 {
		name := slices.Min(twice)
		text := fmt.Sprintf("%s is given %d times: give it once", name, len(values[name]))
		if name == "type" {
			text += ", several types with commas between"
		}
		return &query.UsageError{Message: text}
	}
	return nil
}

// unknownText names things of a kind that there are not, those that may have been meant, and those that there are.
func unknownText(kind string, unknown, known []string) string {
	slices.Sort(unknown)
	there := slices.Compact(slices.Sorted(slices.Values(known)))
	told := unknown[:min(len(unknown), unknownTold)]
	quoted := make([]string, len(told))
	var meant []string
	for i, name := range told {
		quoted[i] = fmt.Sprintf("%.60q", name)
		for _, m := range near.Meant(name, there) {
			if !slices.Contains(meant, m) {
				meant = append(meant, m)
			}
		}
	}
	if more := len(unknown) - len(told); more > 0 {
		quoted = append(quoted, fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("there is no %s %s", kind, alternatives(quoted))
	if len(meant) > 0 {
		text += "; did you mean " + alternatives(meant) + "?"
	}
	if len(there) == 0 {
		return text + "; there are none"
	}
	return text + "; there are " + strings.Join(there, ", ")
}
