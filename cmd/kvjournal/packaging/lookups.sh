#!/usr/bin/env bash
# make lookups: what a recorder on one core answers over HTTP while it records, asked by wrk, which is no part of this project. Publisher and
# wrk have the other cores. About two minutes.
# Environment: RATE (50000 events/s), OBJECTS (100000), SECONDS_EACH (20), CONNECTIONS (16), PORT (5595; HTTP is on PORT + 1).
set -euo pipefail
. "$(dirname "$0")/measured.sh"
bin=$PWD/bin
objects=${OBJECTS:-100000}
rate=${RATE:-50000}
seconds=${SECONDS_EACH:-20}
connections=${CONNECTIONS:-16}
port=${PORT:-5595}
endpoint=tcp://127.0.0.1:$port
http=127.0.0.1:$((port + 1))
work=$(mktemp -d)
trap 'kill -9 ${sim:-} ${recorder:-} 2>/dev/null || true; rm -rf "$work"' EXIT
[ "$(nproc)" -ge 2 ] || { echo "two cores are needed: one is the recorder's" >&2; exit 1; }
others=1-$(($(nproc) - 1))

cpu() { awk '{print $14 + $15}' "/proc/$recorder/stat"; } # in ticks of 10 ms

machine
taskset -c 0 "$bin/kvjournal" record --endpoint "$endpoint" --listen "$http" --dir "$work/live" 2>"$work/record.log" &
recorder=$!
until stats >/dev/null 2>&1; do sleep 0.1; done
taskset -c "$others" "$bin/mooncakesim" --bind "$endpoint" --objects "$objects" --rate "$rate" 2>"$work/sim.log" >"$work/sim.json" &
sim=$!
until [ "$(stats | field objects_live)" -ge $((objects * 9 / 10)) ]; do sleep 1; done
"$bin/kvjournal" objects --dir "$work/live" --tenant default --limit 20000 --output json >"$work/objects"
grep -o '"object_key":"[^"]*"' "$work/objects" | cut -d'"' -f4 | grep -E '^[A-Za-z0-9._-]+$' >"$work/keys"
echo "$(stats | field events) events recorded, $(wc -l <"$work/keys") objects will be asked for"

# measured NAME SCRIPT CONNECTIONS: wrk with a script, and what was recorded meanwhile.
measured() {
	local events used begun=$(date +%s%N) took
	events=$(stats | field events)
	used=$(cpu)
	echo
	echo "== $1"
	taskset -c "$others" wrk -t 1 -c "$3" -d "${seconds}s" --latency -s "$2" "http://$http" | grep -vE '^Running|^ +Thread|^$'
	took=$((($(date +%s%N) - begun) / 1000000))
	echo "meanwhile: $((($(stats | field events) - events) * 1000 / took)) events/s recorded, $(stats | field lag) records behind in the index, the recorder's core $((($(cpu) - used) * 1000 / took)) % busy"
}

cat >"$work/one.lua" <<EOF
local keys = {}
for key in io.lines("$work/keys") do keys[#keys + 1] = key end
request = function() return wrk.format("GET", "/v1/lookup?object_key=" .. keys[math.random(#keys)]) end
response = function(status) if status ~= 200 then print("answered with", status) end end
EOF
cat >"$work/many.lua" <<EOF
local keys = {}
for key in io.lines("$work/keys") do keys[#keys + 1] = key end
local bodies = {}
for i = 1, 20 do
	local lines = {}
	for j = 1, 1000 do lines[j] = '{"object_key":"' .. keys[math.random(#keys)] .. '"}' end
	bodies[i] = table.concat(lines, "\n") .. "\n"
end
local type = {["Content-Type"] = "application/x-ndjson"}
request = function() return wrk.format("POST", "/v1/lookup", type, bodies[math.random(#bodies)]) end
response = function(status) if status ~= 200 then print("answered with", status) end end
EOF
measured "one object a request, $connections connections" "$work/one.lua" "$connections"
measured "1,000 objects a request, one connection" "$work/many.lua" 1
kill -9 "$sim"
measured "the same, nothing to record" "$work/many.lua" 1
echo
echo "gaps: $("$bin/kvjournal" gaps --no-objects --dir "$work/live" --output json | causes)"
