package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
)

// adviseOnMoments says of each moment among the flags that was most likely meant in another unit.
func adviseOnMoments(cmd *cobra.Command) {
	for _, name := range []string{"at", "from", "to"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			adviseOnMoment(cmd.ErrOrStderr(), name, f.Value.String())
		}
	}
}

func adviseOnMoment(w io.Writer, flag, text string) {
	if seconds, looks := unixSeconds(text); looks {
		fmt.Fprintf(w, "--%s %s is in Unix milliseconds, and so %s; if those are seconds, write %s000 for %s\n", flag, text,
			time.UnixMilli(seconds).UTC().Format(time.RFC3339), text, time.Unix(seconds, 0).UTC().Format(time.RFC3339))
	}
}

// unixSeconds tells whether a moment looks like Unix seconds, of the years 2001 to 2286: as milliseconds it is one of early 1970.
func unixSeconds(text string) (seconds int64, looks bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 1e9 && n < 1e10
}

// cutKeyHint says of a key that nothing is known of that a table has most likely shortened it; empty: nothing speaks for that.
func cutKeyHint(key query.Bytes) string {
	if !strings.Contains(string(key), "…") {
		return ""
	}
	return "The key holds “…”, which is how a table shortens a long one: --output json prints it whole, and `kvjournal objects --prefix` with its beginning finds it."
}

// unheard tells that no event ever named the object of an answer.
func unheard(a *query.Answer) bool {
	for _, m := range a.Media {
		if m.Evidence != nil {
			return false
		}
	}
	return true
}

// elsewhereRows name the scopes in which else a key was seen.
func elsewhereRows(out printer, scopes []query.Name) {
	for i, e := range scopes {
		if i == 0 {
			out.row(nil, "The key was seen elsewhere; ask with:")
		}
		out.row(nil, fmt.Sprintf("  --source %s --backend %s --tenant %s", shellQuote(e.Source), shellQuote(string(e.Backend)), shellQuote(string(e.Tenant))))
	}
}

// elsewhere shows where else the key of a question was seen, if where it was asked for no event ever named it.
func (t *target) elsewhere(cmd *cobra.Command, out printer, q *query.Question) error {
	values := url.Values{
		"object_key_base64": {base64.StdEncoding.EncodeToString(q.Key)}, "tenant_id_base64": {base64.StdEncoding.EncodeToString(q.Tenant)},
		"notes": {"true"}, "limit": {"1"},
	}
	if q.Source != "" {
		values.Set("source", q.Source)
	}
	if q.Backend != nil {
		values.Set("backend_id_base64", base64.StdEncoding.EncodeToString(q.Backend))
	}
	return t.question(cmd.Context(), "history", values, "", func(line []byte) error {
		var n query.HistoryNote
		var kind struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(line, &kind); err != nil || kind.Kind != query.NoteNever {
			return err
		}
		if err := json.Unmarshal(line, &n); err != nil {
			return err
		}
		elsewhereRows(out, n.Elsewhere)
		return nil
	})
}

// lookedAt are the types of lines of log that tell that something was looked at for losses.
const lookedAt = "event,duplicate,empty,gap,damaged"

// sayNothingLost says, of an answer without a loss, whether anything was there that losses could have shown in.
func (a *asking) sayNothingLost(t *target) (string, error) {
	values := a.values()
	span := values.Get("from") != "" || values.Get("to") != ""
	for name := range values {
		if name != "source" && name != "from" && name != "to" {
			values.Del(name)
		}
	}
	values.Set("type", lookedAt)
	values.Set("limit", "1")
	any := false
	err := t.question(a.cmd.Context(), "log", values, "", func([]byte) error {
		any = true
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case any:
		return "No loss was seen.", nil
	case span:
		return "Nothing was recorded there, so nothing can be said of losses. `kvjournal activity` shows when something was.", nil
	}
	return "Nothing was recorded yet, so nothing can be said of losses. `kvjournal stats` shows whether the sources are connected.", nil
}
