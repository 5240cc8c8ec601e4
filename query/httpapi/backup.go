package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/kvjournal/kvjournal/query/backup"
)

// BackupLine is a line of a backup: how far it is, or, at the end, what it came to.
type BackupLine struct {
	Progress *backup.Progress `json:"progress,omitempty"`
	Report   *backup.Report   `json:"report,omitempty"`
}

// backupNow needs no index: a backup of a journal whose index failed is worth having most.
func backupNow(w http.ResponseWriter, r *http.Request, s Source) {
	out := newLines(w, r)
	defer out.out.Flush() // nobody is left to be told if that fails
	to, err := backupTo(w, r)
	if err != nil {
		out.fail(err)
		return
	}
	var pace pacer
	report, err := s.Backup(r.Context(), to, func(p backup.Progress) {
		if !pace.due(p.Step) {
			return
		}
		// A client that went away is seen by the request's context.
		_ = out.write(BackupLine{Progress: &p})
		_ = out.flush()
	})
	if err != nil {
		out.fail(err)
		return
	}
	_ = out.write(BackupLine{Report: report}) // nobody is left to be told if that fails
}

func backupTo(w http.ResponseWriter, r *http.Request) (string, error) {
	p, err := onlyPathParams(w, r)
	if err != nil {
		return "", err
	}
	to := p.text("to")
	if to == "" {
		p.bad("name the directory that the backup goes to")
	}
	return to, p.err()
}

// Backup has the recorder write a backup to the directory to, which must be absolute: the recorder has a working directory of its own.
func (c *Client) Backup(ctx context.Context, to string, progress func(backup.Progress)) (*backup.Report, error) {
	var report *backup.Report
	err := c.ask(ctx, http.MethodPost, "/v1/backup", url.Values{"to": {to}}, nil, func(line []byte) error {
		var l BackupLine
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if l.Report != nil {
			report = l.Report
		}
		if l.Progress != nil && progress != nil {
			progress(*l.Progress)
		}
		return nil
	})
	if err == nil && report == nil {
		err = errors.New("the recorder ended before the backup was whole; what there was of it is gone, take another one")
	}
	return report, err
}
