#!/usr/bin/env bash
# make past: what questions about the past cost on a large directory, measured on this machine. About five minutes and 10 GB of
# disk with the defaults. Environment: EVENTS (20000000), RATE (5000 events/s of publisher time), OBJECTS (2000000 live),
# KEEP (a directory: used if it is there, else made and kept).
set -euo pipefail
. "$(dirname "$0")/measured.sh"
bin=$PWD/bin
events=${EVENTS:-20000000}
rate=${RATE:-5000}
objects=${OBJECTS:-2000000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
data=${KEEP:-$work/data}

machine
if [ ! -d "$data" ]; then
	"$bin/mooncakesim" --capture "$work/day.kvcap" --events "$events" --rate "$rate" --objects "$objects" >/dev/null
	"$bin/kvjournal" import --dir "$data" --source day "$work/day.kvcap" 2>/dev/null
	rm "$work/day.kvcap"
fi
field() { grep -o "\"$1\":\"\?[^\",}]*" | sed -n '1s/.*:"\?//p'; }
used() { grep -o "$1 [0-9]*" "$work/used" | tail -n 1 | cut -d' ' -f2; }
# ask NAME… : runs it once to warm the page cache, then three times; keeps stdout of the last, and the median's figures.
ask() {
	local all=() n
	"$bin/kvjournal" "$@" --dir "$data" --output json >"$work/out" 2>/dev/null
	for n in 1 2 3; do
		"$bin/kvjournal" "$@" --dir "$data" --output json --resources >"$work/out" 2>"$work/used"
		all+=("$(used took_ms) $(used resident_mib)")
	done
	read -r took memory < <(printf '%s\n' "${all[@]}" | sort -n | sed -n 2p)
}
per_second() { awk "BEGIN{printf \"%d\", $1*1000/($took>0?$took:1)}"; }

stats=$("$bin/kvjournal" stats --dir "$data" --output json)
events=$(echo "$stats" | field events)
end=$(echo "$stats" | grep -o '"last_time":"[^"]*' | cut -d'"' -f4)
minutes_ago() { date -u -d "$end - $1 minutes" +%Y-%m-%dT%H:%M:%SZ; }
middle=$(minutes_ago 30)
echo "$events events, $rate/s of publisher time, $(echo "$stats" | field objects_live) live objects, until $end"
# A hot object: the one with the most events among those of two seconds.
"$bin/kvjournal" log --dir "$data" --from "$middle" --limit 20000 --output json >"$work/two"
key=$(grep -o '"object_key":"[^"]*' "$work/two" | cut -d'"' -f4 | sort | uniq -c | sort -rn | awk 'NR==1{print $2}')
tenant=$(grep "\"object_key\":\"$key\"" "$work/two" | field tenant_id)

ask history "$key" --tenant "$tenant"
echo "history of $key ($(wc -l <"$work/out") lines): $took ms, $memory MiB"
ask why "$key" --tenant "$tenant" --at "$middle"
echo "why at $middle: $took ms, $memory MiB"
ask objects --at "$middle" --state any --count
n=$(cat "$work/out" | field objects)
echo "objects --at $middle --state any --count: $n objects in $took ms, $(per_second "$n") objects/s, $memory MiB"
ask objects --at "$middle" --count
echo "the same, only the $(cat "$work/out" | field objects) that were present: $took ms"
ask objects --at "$middle" --limit 1000000
echo "objects --at $middle --limit 1000000: $took ms, $(per_second "$(wc -l <"$work/out")") objects/s as lines, $memory MiB"
for per in 1000 2000 5000; do
	from=$(date -u -d "$end - 30 minutes - $((60 * per / rate)) seconds" +%Y-%m-%dT%H:%M:%SZ)
	ask diff --from "$from" --to "$middle" --summary
	echo "diff, summary, of a minute at $per events/s ($((60 * per)) events): $took ms, $memory MiB"
done
ask diff --from "$(minutes_ago 31)" --to "$middle"
echo "the same, all $(wc -l <"$work/out") changes: $took ms, $memory MiB"
ask log --from "$(minutes_ago 40)"
n=$(wc -l <"$work/out")
echo "log of 40 minutes: $n lines in $took ms, $(per_second "$n") lines/s, $memory MiB"
ask lifetimes
echo "lifetimes of everything: $took ms, $(per_second "$events") events/s, $memory MiB"
ask activity
echo "activity of everything: $took ms, $(per_second "$events") events/s, $memory MiB"
ask gaps
echo "gaps: $took ms, $memory MiB"
