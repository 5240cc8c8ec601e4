package service

import (
	"net/http"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/index/reconcile"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/journal/subscribe"
)

// Metrics implements httpapi.Metered.
func (s *Service) Metrics() http.Handler { return s.metrics.handler }

// Answered implements httpapi.Observer.
func (s *Service) Answered(path string, status int, took time.Duration) {
	s.metrics.answered(path, status, took)
}

// figures tells what a running recorder knows.
func (s *Service) figures(f *figures) {
	names := map[uint32]string{}
	for _, src := range s.journal.Sources() {
		names[src.ID] = src.Name
	}
	x := s.index.Load()
	for _, src := range s.recorded {
		s.sourceFigures(f, src)
	}
	s.markFigures(f, x)
	s.countFigures(f, names)
	s.masterFigures(f)
	for _, st := range s.sockets() {
		f.yes("socket_connected", st.Connected, st.Source, st.Endpoint)
		f.say("socket_disconnects_total", float64(st.Disconnects), st.Source, st.Endpoint)
		f.say("socket_stalls_total", float64(st.Stalls), st.Source, st.Endpoint)
	}
	bytes, most := s.rec.Buffered()
	f.say("buffer_bytes", float64(bytes))
	f.say("buffer_limit_bytes", float64(most))
	f.yes("recording_paused", s.rec.Paused() != nil)
	f.yes("disk_full", s.journal.WaitsForRoom())
	f.say("disk_least_free_bytes", float64(s.minFree))
	diskFigures(f, s.fs, s.dir)
	f.yes("index_open", x != nil && s.indexErr.Load() == nil)
	storeFigures(f, s.journal, x)
	f.say("native_bytes", float64(subscribe.NativeBytes()))
}

func (s *Service) sourceFigures(f *figures, src journal.Source) {
	c := s.rec.Counted(src.ID)
	f.yes("source_connected", s.rec.Connected(src.ID), src.Name)
	f.say("source_messages_total", float64(c.Messages), src.Name)
	f.say("source_bytes_total", float64(c.Bytes), src.Name)
	f.say("source_duplicate_messages_total", float64(c.Duplicates), src.Name)
	f.say("source_damaged_messages_total", float64(c.Damaged), src.Name)
	if c.Received != 0 {
		f.say("source_last_received_timestamp_seconds", float64(c.Received)/1e9, src.Name)
	}
	if c.Time != 0 {
		f.say("source_last_batch_timestamp_seconds", float64(c.Time)/1e3, src.Name)
	}
}

// markFigures tells which sources have a mark that stands.
func (s *Service) markFigures(f *figures, x *index.Index) {
	if x == nil {
		return
	}
	v, err := x.View()
	if err != nil {
		return // it is just being replaced
	}
	defer v.Close()
	for _, src := range s.recorded {
		st := v.Source(src.ID)
		f.yes("source_mark_open", st.MarkFrom > s.readTo(src.ID), src.Name)
	}
}

// countFigures tells what the recorder counts by kind and cause.
func (s *Service) countFigures(f *figures, names map[uint32]string) {
	t := s.rec.Tally()
	for _, c := range t.Events() {
		medium := c.Medium
		if c.Type == event.Cleared {
			medium = "all"
		}
		f.say("events_total", float64(c.Count()), names[c.Source], c.Type.String(), medium, c.Tenant)
	}
	faults := map[[2]uint32]recorder.FaultCount{}
	for _, c := range t.Faults() {
		faults[[2]uint32{c.Source, uint32(c.Cause)}] = c
	}
	for _, src := range s.recorded { // a cause that was not met yet is told as 0: so its first loss is seen as a rise
		for cause := continuity.PublisherQueue; cause.Known(); cause++ {
			c, name := faults[[2]uint32{src.ID, uint32(cause)}], cause.String()
			f.say("gaps_total", float64(c.Gaps), src.Name, name)
			f.say("missing_messages_total", float64(c.Missing), src.Name, name)
			f.say("lost_events_least_total", float64(c.LostMin), src.Name, name)
			f.say("lost_events_most_total", float64(c.LostMax), src.Name, name)
			f.say("marks_total", float64(c.Marks), src.Name, name)
		}
	}
}

// masterFigures tells what the masters say, and what readings of them came to.
func (s *Service) masterFigures(f *figures) {
	for _, m := range s.masters {
		seq := s.rec.Counted(m.source.ID).Seq
		for _, st := range m.stats() {
			f.yes("master_up", st.Answers, st.Source, st.URL)
			f.yes("master_delivers", st.Delivers, st.Source, st.URL)
			if !st.Answers {
				continue
			}
			f.say("publisher_batches_total", float64(st.PublishedBatches), st.Source, st.URL)
			f.say("publisher_events_total", float64(st.PublishedEvents), st.Source, st.URL)
			f.say("publisher_dropped_events_total", float64(st.DroppedEvents), st.Source, st.URL)
			if st.Delivers && seq > 0 {
				f.say("publisher_lag_messages", float64(st.LastSeq-min(st.LastSeq, seq)), st.Source, st.URL)
			}
		}
		r := &m.readings
		f.say("readings_total", float64(r.held.Load()), m.source.Name, "held")
		f.say("readings_total", float64(r.failed.Load()), m.source.Name, "failed")
		f.say("reading_corrections_total", float64(r.corrections.Load()), m.source.Name)
		f.say("contradictions_total", float64(r.contradictions.Load()), m.source.Name)
		if at := r.at.Load(); at != 0 {
			f.say("last_reading_timestamp_seconds", float64(at)/1e9, m.source.Name)
		}
	}
}

// ended counts a reading that ended.
func (r *readings) ended(report *reconcile.Report, err error) {
	if err != nil {
		r.failed.Add(1)
		return
	}
	if report.DryRun {
		return
	}
	r.held.Add(1)
	r.corrections.Add(uint64(report.Corrections))
	r.contradictions.Add(uint64(report.Contradictions))
	r.to.Store(report.Begun)
	r.at.Store(time.Now().UnixNano())
}

// readTo is the offset at which the newest reading of a source's master that held in this run began; 0: none did.
func (s *Service) readTo(source uint32) uint64 {
	for _, m := range s.masters {
		if m.source.ID == source {
			return m.readings.to.Load()
		}
	}
	return 0
}

// storeFigures tells of journal and index; x is nil where there is none.
func storeFigures(f *figures, j *journal.Journal, x *index.Index) {
	d := j.Durables()
	f.say("durable_offset", float64(d.Durable))
	f.say("journal_messages_total", float64(d.Totals.Messages))
	f.say("journal_events_total", float64(d.Totals.Events))
	f.say("journal_raw_bytes_total", float64(d.Totals.RawBytes))
	of := j.Database()
	databaseFigures(f, "journal", of)
	f.say("database_cache_bytes", float64(of.BlockCache.Size))
	f.say("database_cache_hits_total", float64(of.BlockCache.Hits))
	f.say("database_cache_misses_total", float64(of.BlockCache.Misses))
	if x == nil {
		return
	}
	applied := x.Applied()
	f.say("index_applied_offset", float64(applied))
	f.say("index_lag_records", float64(d.Durable-min(d.Durable, applied)))
	if of := x.Database(); of != nil {
		databaseFigures(f, "index", of)
	}
}

func databaseFigures(f *figures, name string, m *pebble.Metrics) {
	total := m.Total()
	f.say("database_bytes", float64(total.TablesSize), name)
	f.say("database_wal_bytes", float64(m.WAL.PhysicalSize), name)
	f.say("database_memtable_bytes", float64(m.MemTable.Size), name)
	f.say("database_read_amplification", float64(m.ReadAmp()), name)
	f.say("database_compaction_debt_bytes", float64(m.Compact.EstimatedDebt), name)
	f.say("database_compactions_total", float64(m.Compact.Count), name)
}

func diskFigures(f *figures, fs vfs.FS, dir string) {
	usage, err := fs.GetDiskUsage(dir)
	if err != nil {
		return
	}
	f.say("disk_free_bytes", float64(usage.AvailBytes))
	f.say("disk_size_bytes", float64(usage.TotalBytes))
}
