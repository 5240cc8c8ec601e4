#!/usr/bin/env bash
# make run: record, index and serve, and show what there is to look at. Without ENDPOINT a simulated master runs beside it.
# Environment: PORT and ADMIN_PORT of the simulated master, DIR, ENDPOINT, MASTER, DURATION (as 20s; empty: until Ctrl-C).
set -euo pipefail
bin=bin/kvjournal
dir=${DIR:-kvjournal-data}
endpoint=${ENDPOINT:-}
sim=

end() {
	trap - EXIT INT TERM
	[ -z "$sim" ] || kill "$sim" 2>/dev/null || true
	[ -z "${recorder:-}" ] || { kill -INT "$recorder" 2>/dev/null || true; wait "$recorder" 2>/dev/null || true; }
	[ -z "${truth:-}" ] || rm -f "$truth"
}
trap end EXIT INT TERM

say() { printf '\n== %s\n' "$*" >&2; }

if [ -z "$endpoint" ]; then
	endpoint=tcp://127.0.0.1:${PORT:-5557}
	MASTER=http://127.0.0.1:${ADMIN_PORT:-9003}
	truth=$(mktemp)
	say "a simulated Mooncake master publishes on $endpoint, its admin API is $MASTER: 3 tenants, bursts that overflow its queue"
	bin/mooncakesim --bind "$endpoint" --admin "${MASTER#http://}" --rate 2000 --tenants 3 --objects 5000 --queue-capacity 1000 --burst 3000 --truth "$truth" >/dev/null &
	sim=$!
fi

say "recording $endpoint into $dir; Ctrl-C ends it"
cat >&2 <<EOF
   In another terminal:
     $bin stats  --dir $dir          what is recorded, and where the source stands
     $bin gaps   --dir $dir          what was lost, and why
     $bin lookup --dir $dir KEY      where an object is, and how sure that is; --at for the past
     $bin why    --dir $dir KEY      the story behind that
     $bin activity --dir $dir        events over time, with what was lost
     $bin objects --dir $dir --count how many there are, and how many are in doubt
EOF
master=()
[ -z "${MASTER:-}" ] || master=(--master "$MASTER")
"$bin" record --endpoint "$endpoint" "${master[@]}" --dir "$dir" ${DURATION:+--duration "$DURATION"} &
recorder=$!

# A first look, once there is something to see.
look() {
	for _ in $(seq 1 100); do
		sleep 0.1
		kill -0 "$recorder" 2>/dev/null || return 0
		if [ -z "${truth:-}" ]; then
			[ "$SECONDS" -ge 8 ] && break
		else
			[ "$(wc -l <"$truth")" -ge 2 ] && break
		fi
	done
	say "a first look: $bin stats --dir $dir"
	"$bin" stats --dir "$dir" || true
	say "what was lost so far: $bin gaps --dir $dir"
	"$bin" gaps --dir "$dir" | tail -n 8 || true
	[ -n "${truth:-}" ] || return 0
	# A key of tenant "default" (ZGVmYXVsdA== in base64) that the simulated master holds.
	key=$(tail -n 1 "$truth" | grep -o '"ZGVmYXVsdA==","[^"]*"' | head -n 1 | cut -d'"' -f4 || true)
	[ -n "$key" ] || return 0
	say "one object: $bin lookup --dir $dir --base64 $key"
	"$bin" lookup --dir "$dir" --base64 "$key" || true
	say "why that is so: $bin why --dir $dir --base64 $key"
	"$bin" why --dir "$dir" --base64 "$key" || true
	say "recording goes on"
}
look >&2 &
wait "$recorder"
recorder=
wait $! 2>/dev/null || true
say "ended; the directory answers at rest as well: $bin stats --dir $dir"
"$bin" stats --dir "$dir" >&2
