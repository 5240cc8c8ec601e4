# What the scripts that measure share; they source it. $bin is where the programs are, $work/live the directory that is recorded to.

# machine says what the figures were measured on.
machine() {
	echo "machine: $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(uname -sr), load $(cut -d' ' -f1 /proc/loadavg)"
}
# field NAME: the first number of that name in the JSON on stdin.
field() { grep -o "\"$1\":[0-9.]*" | head -n 1 | cut -d: -f2; }
stats() { "$bin/kvjournal" stats --dir "$work/live" --output json; }
# causes: of the losses that gaps tells of as JSON on stdin, how many of each cause.
causes() { grep -o '"cause":"[a-z_]*"' | cut -d'"' -f4 | sort | uniq -c | awk '{printf "%s %s  ", $1, $2}'; }
