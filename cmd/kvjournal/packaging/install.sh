#!/usr/bin/env bash
# make install: the program, its man pages and completions, and, with a systemd unit, an example of its settings.
# Environment: PREFIX (/usr/local), SYSCONFDIR (/etc), UNITDIR and SYSUSERSDIR (systemd's, below PREFIX), DESTDIR (put before all of
# them, for packages), BIN (bin/kvjournal). What stands in SYSCONFDIR already is left as it is. With -u all but that is removed.
set -euo pipefail
cd "$(dirname "$0")"

prefix=${PREFIX:-/usr/local}
sysconfdir=${SYSCONFDIR:-/etc}
unitdir=${UNITDIR:-$prefix/lib/systemd/system}
sysusersdir=${SYSUSERSDIR:-$prefix/lib/sysusers.d}
dest=${DESTDIR:-}
bin=${BIN:-../../../bin/kvjournal}

manual=$(mktemp -d)
trap 'rm -rf "$manual"' EXIT
"$bin" manual "$manual"

if [ "${1:-}" = -u ]; then
	rm -f "$dest$prefix/bin/kvjournal" "$dest$unitdir/kvjournal.service" "$dest$sysusersdir/kvjournal.conf"
	(cd "$manual" && find . -type f) | while read -r page; do rm -f "$dest$prefix/share/$page"; done
	exit
fi

install -D -m 755 "$bin" "$dest$prefix/bin/kvjournal"
(cd "$manual" && find . -type f) | while read -r page; do
	install -D -m 644 "$manual/$page" "$dest$prefix/share/$page"
done
install -D -m 644 kvjournal.sysusers "$dest$sysusersdir/kvjournal.conf"
install -d "$dest$unitdir"
sed -e "s|@PREFIX@|$prefix|; s|@SYSCONFDIR@|$sysconfdir|" kvjournal.service >"$dest$unitdir/kvjournal.service"
chmod 644 "$dest$unitdir/kvjournal.service"
config=$dest$sysconfdir/kvjournal/kvjournal.toml
[ -e "$config" ] || install -D -m 644 kvjournal.toml "$config"
