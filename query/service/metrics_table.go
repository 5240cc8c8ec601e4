package service

// metricTable are the metrics of a service: the name, what it tells, and its labels. A name that ends in _total only rises, and begins
// anew with the process, unless its text says otherwise.
func metricTable() []metricRow {
	return []metricRow{
		{"source_connected", "Whether a connection stands that messages of the source are proven to come by.", labels("source")},
		{"source_messages_total", "Messages received from the source.", labels("source")},
		{"source_bytes_total", "Bytes of the messages received from the source, as the publisher sent them.", labels("source")},
		{"source_duplicate_messages_total", "Messages that were equal to the one before them, and change nothing.", labels("source")},
		{"source_damaged_messages_total", "Messages that cannot be decoded: kept as they are, each a mark.", labels("source")},
		{"source_last_received_timestamp_seconds", "Our clock at the newest message of the source.", labels("source")},
		{"source_last_batch_timestamp_seconds", "The publisher's clock at the newest message of the source.", labels("source")},
		{"source_mark_open", "Whether a mark of the source stands that no reading of a master has resolved since: answers that rest on older events are uncertain.", labels("source")},
		{"events_total", "Events received, by type, medium and tenant. The first 8 media and 50 tenants have labels of their own, the others are \"other\".", labels("source", "type", "medium", "tenant")},
		{"gaps_total", "Losses found in the stream, by cause.", labels("source", "cause")},
		{"missing_messages_total", "Sequence numbers that were never received, by the cause of the gap.", labels("source", "cause")},
		{"lost_events_least_total", "Events that were lost at least, where that is known, by the cause of the gap.", labels("source", "cause")},
		{"lost_events_most_total", "Events that were lost at most, where that is known, by the cause of the gap.", labels("source", "cause")},
		{"marks_total", "Marks set: what was known of the source before is in doubt, by cause.", labels("source", "cause")},

		{"socket_connected", "Whether a connection to the endpoint stands.", labels("source", "endpoint")},
		{"socket_disconnects_total", "Connections to the endpoint that broke after their handshake.", labels("source", "endpoint")},
		{"socket_stalls_total", "How often nothing was read from the endpoint because the buffer was full.", labels("source", "endpoint")},

		{"master_up", "Whether the master answered the last poll.", labels("source", "master")},
		{"master_delivers", "Whether the master is the one whose endpoint delivers the source's messages.", labels("source", "master")},
		{"publisher_batches_total", "Messages that the publisher says it sent. It begins anew with the master's process.", labels("source", "master")},
		{"publisher_events_total", "Events that the publisher says it sent. It begins anew with the master's process.", labels("source", "master")},
		{"publisher_dropped_events_total", "Events that the publisher says its queue dropped. It begins anew with the master's process.", labels("source", "master")},
		{"publisher_lag_messages", "Messages that the publisher has sent or dropped and we have not received, by its last poll.", labels("source", "master")},
		{"readings_total", "Readings of the master that ended, by outcome: held or failed.", labels("source", "outcome")},
		{"reading_corrections_total", "Objects that a reading of the master corrected.", labels("source")},
		{"contradictions_total", "Objects that the master changed without an event, as two readings agreed.", labels("source")},
		{"last_reading_timestamp_seconds", "Our clock when a reading of the master held last.", labels("source")},

		{"buffer_bytes", "Bytes received that wait for the journal.", nil},
		{"buffer_limit_bytes", "Bytes that may wait for the journal; when as many do, nothing is read.", nil},
		{"recording_paused", "Whether recording is paused for want of room on the disk.", nil},
		{"disk_full", "Whether a write waits for room.", nil},
		{"disk_free_bytes", "Bytes that are free on the disk of the data directory.", nil},
		{"disk_size_bytes", "Size of the disk of the data directory.", nil},
		{"disk_least_free_bytes", "Recording pauses while fewer bytes are free (--min-free).", nil},

		{"durable_offset", "The newest offset that is acknowledged: it survives a crash.", nil},
		{"journal_messages_total", "Messages in the journal, of all runs.", nil},
		{"journal_events_total", "Events in the journal, of all runs.", nil},
		{"journal_raw_bytes_total", "Bytes of the messages in the journal as they were received, of all runs.", nil},
		{"index_open", "Whether the index is open; where it failed, recording goes on and questions are not answered.", nil},
		{"index_applied_offset", "The offset up to which the index has the journal.", nil},
		{"index_lag_records", "Records that the index is behind the journal.", nil},

		{"database_bytes", "Bytes of the database's tables on disk.", labels("database")},
		{"database_wal_bytes", "Bytes of the database's write-ahead logs on disk.", labels("database")},
		{"database_memtable_bytes", "Bytes of the database's memtables.", labels("database")},
		{"database_read_amplification", "Places in which a read may have to look.", labels("database")},
		{"database_compaction_debt_bytes", "Bytes that wait to be compacted.", labels("database")},
		{"database_compactions_total", "Compactions done.", labels("database")},
		{"database_cache_bytes", "Bytes in the cache that the databases share.", nil},
		{"database_cache_hits_total", "Blocks that were found in the cache that the databases share.", nil},
		{"database_cache_misses_total", "Blocks that were not found in the cache that the databases share.", nil},
		{"native_bytes", "Bytes held outside Go's heap: by ZeroMQ and the databases.", nil},
	}
}

// metricRow describes a metric; its name stands behind kvjournal_.
type metricRow struct {
	name   string
	help   string
	labels []string
}

func labels(names ...string) []string { return names }

// MetricNames are the names of a service's metrics, but for those of Go and the process; a histogram's as its series have them.
func MetricNames() []string {
	var out []string
	for _, row := range metricTable() {
		out = append(out, metricPrefix+row.name)
	}
	for _, histogram := range []string{"commit_duration_seconds", "commit_records", "http_request_duration_seconds"} {
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			out = append(out, metricPrefix+histogram+end)
		}
	}
	return out
}
