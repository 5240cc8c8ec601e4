package httpapi

import (
	"context"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/query"
)

// captureLine is a record of a capture as a line.
type captureLine struct{ *capture.Record }

// AppendJSON implements query.JSONAppender.
func (l *captureLine) AppendJSON(dst []byte) []byte { return query.AppendCaptureJSON(dst, l.Record) }

// export answers export: source, from, to; format=kvcap gives the records of a capture, which whoever asked writes into one,
// ndjson every record with what is in it.
func export(ctx context.Context, e *query.Engine, p *params, progress query.Progress, emit Emit) error {
	source, span := p.text("source"), p.span(e.Clock())
	format := p.choice("format", "kvcap", "ndjson")
	if err := p.err(); err != nil {
		return err
	}
	if format == "ndjson" {
		return e.ExportRecords(ctx, source, span, progress, func(l *query.ExportLine) error { return emit(l) })
	}
	var l captureLine
	return e.ExportCapture(ctx, source, span, progress, func(rec *capture.Record) error {
		l.Record = rec
		return emit(&l)
	})
}
