#!/usr/bin/env bash
# make doubts: how long a reading of the master takes to resolve the doubts of many objects, while events come. About three minutes.
# Environment: OBJECTS (1000000), RATE (50000 events/s), PORT (5597; the admin API is on PORT + 1).
set -euo pipefail
. "$(dirname "$0")/measured.sh"
bin=$PWD/bin
objects=${OBJECTS:-1000000}
rate=${RATE:-50000}
port=${PORT:-5597}
endpoint=tcp://127.0.0.1:$port
master=127.0.0.1:$((port + 1))
work=$(mktemp -d)
trap 'kill -9 ${sim:-} ${recorder:-} 2>/dev/null || true; rm -rf "$work"' EXIT

start() {
	"$bin/kvjournal" record --endpoint "$endpoint" --master "http://$master" --dir "$work/live" 2>>"$work/record.log" &
	recorder=$!
	until stats >/dev/null 2>&1; do sleep 0.1; done
}
machine
"$bin/mooncakesim" --bind "$endpoint" --admin "$master" --tenants 1 --objects "$objects" --rate "$rate" 2>"$work/sim.log" >"$work/sim.json" &
sim=$!
start
until [ "$(stats | field objects_live)" -ge $((objects * 95 / 100)) ]; do sleep 2; done
echo "$(stats | field objects_live) live objects, $(stats | field events) events recorded; the recorder is stopped and started, which puts all in doubt"
kill -INT "$recorder"
wait "$recorder" || true
before=$(stats | field readings)
start
begun=$(date +%s%N)
received=$(stats | field events)
until [ "$(stats | field readings)" -gt "${before:-0}" ]; do sleep 0.2; done
took=$((($(date +%s%N) - begun) / 1000000))
events=$(($(stats | field events) - received))
echo "resolved in $took ms; $((events * 1000 / took)) events/s recorded meanwhile, $(stats | field lag) records behind in the index; memory $(($(grep VmHWM "/proc/$recorder/status" | tr -dc 0-9) / 1024)) MiB at most"
"$bin/kvjournal" log --dir "$work/live" --type reconciliation_ended --output json | tail -n 1
echo "gaps: $("$bin/kvjournal" gaps --no-objects --dir "$work/live" --output json | causes)"
"$bin/kvjournal" objects --dir "$work/live" --count
grep -v connected "$work/record.log" | tail -n 5
