#!/usr/bin/env bash
# make figures: the figures that the README gives, measured on this machine. About three minutes and 3 GB of disk.
# Environment: SECONDS_FLAT (30), RATE (0: flat out; events/s), EVENTS (1000000, of the captures), PORT (5599).
set -euo pipefail
. "$(dirname "$0")/measured.sh"
bin=$PWD/bin
seconds=${SECONDS_FLAT:-30}
events=${EVENTS:-1000000}
endpoint=tcp://127.0.0.1:${PORT:-5599}
work=$(mktemp -d)
recorder=
trap '[ -z "$recorder" ] || kill -9 "$recorder" 2>/dev/null || true; rm -rf "$work"' EXIT

now() { date +%s%N; }
since() { echo $((($(now) - $1) / 1000000)); } # ms

machine

echo
echo "== flat out: mooncakesim --rate ${RATE:-0} for $seconds s against record, default settings"
"$bin/kvjournal" record --endpoint "$endpoint" --dir "$work/live" 2>"$work/record.log" &
recorder=$!
until stats >/dev/null 2>&1; do sleep 0.1; done
"$bin/mooncakesim" --bind "$endpoint" --rate "${RATE:-0}" --duration "${seconds}s" >"$work/sim.json" 2>/dev/null
end=$(now)
until [ "$(stats | field buffer_bytes)" = 0 ]; do sleep 0.1; done
during=$(awk "BEGIN{printf \"%d\", 100*$(stats | field applied_offset)/$(stats | field durable_offset)}")
received=$(stats | field events)
until [ "$(stats | field lag)" = 0 ]; do sleep 1; done
caughtup=$(since "$end")
sent=$(field published_events <"$work/sim.json")
took=$(field seconds <"$work/sim.json")
echo "sent       $sent events in $took s, $(awk "BEGIN{printf \"%d\", $sent/$took}") events/s"
echo "received   $received events, $(awk "BEGIN{printf \"%d\", $received/$took}") events/s, all durable: offset $(stats | field durable_offset)"
echo "gaps       $("$bin/kvjournal" gaps --dir "$work/live" --output json | causes)"
echo "index      $during % done when the last message came, caught up $caughtup ms later"
echo "memory     $(($(grep VmHWM /proc/$recorder/status | tr -dc 0-9) / 1024)) MiB at most (resident), buffer, catch-up and questions included"
echo "disk       journal $(stats | grep -o '"journal":{[^}]*}' | field bytes_per_event) B an event, index $(stats | grep -o '"index":{[^}]*}' | field bytes_per_event) B an event, raw $(stats | field raw_bytes_per_event) B"

echo
echo "== first answer after kill -9, with $received events recorded"
sleep 2
kill -9 "$recorder"
wait "$recorder" 2>/dev/null || true
recorder=
begun=$(now)
"$bin/kvjournal" lookup --dir "$work/live" some-key >/dev/null
echo "at rest    $(since "$begun") ms from the command's start to its answer; again $(begun=$(now); "$bin/kvjournal" lookup --dir "$work/live" some-key >/dev/null; since "$begun") ms"
begun=$(now)
"$bin/kvjournal" record --endpoint "$endpoint" --dir "$work/live" 2>>"$work/record.log" &
recorder=$!
until "$bin/kvjournal" lookup --dir "$work/live" some-key >/dev/null 2>&1; do :; done
echo "live       $(since "$begun") ms from the recorder's start to its first answer"
kill -INT "$recorder"
wait "$recorder" || true
recorder=
rm -rf "$work/live"

echo
echo "== disk, sealed: $events events imported"
for batch in 64 1; do
	"$bin/mooncakesim" --capture "$work/c.kvcap" --events "$events" --batch $batch >/dev/null
	begun=$(now)
	"$bin/kvjournal" import --dir "$work/disk" "$work/c.kvcap" 2>/dev/null
	took=$(since "$begun")
	s=$("$bin/kvjournal" stats --dir "$work/disk" --output json)
	line="$batch events a message: raw $(echo "$s" | field raw_bytes_per_event), journal $(echo "$s" | grep -o '"journal":{[^}]*}' | field bytes_per_event), index $(echo "$s" | grep -o '"index":{[^}]*}' | field bytes_per_event) B an event; import and index $(awk "BEGIN{printf \"%d\", $events*1000/$took}") events/s"
	if command -v zstd >/dev/null; then
		line="$line; zstd -3 of the capture $(awk "BEGIN{printf \"%.1f\", $(zstd -3 -q -c "$work/c.kvcap" | wc -c)/$events}") B an event"
	fi
	echo "$line"
	rm -rf "$work/disk" "$work/c.kvcap"
done
