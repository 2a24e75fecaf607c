#!/usr/bin/env bash
# With two interfaces up and no traffic the router takes under 2 percent of a core, and the first packet after a
# quiet time still gets through.
. "$(dirname "$0")/lib.sh"
need ping
begin cpu { workers 1 }
ticks() { awk '{ print $14 + $15 }' "/proc/$router/stat"; }
sleep 2
before=$(ticks)
sleep 5
used=$(($(ticks) - before))
hz=$(getconf CLK_TCK)
# In tenths of a percent of one core, over 5 seconds.
share=$((used * 1000 / (5 * hz)))
[ "$share" -lt 20 ] || fail "idle takes $((share / 10)).$((share % 10)) percent of a core"
out=$(in_a ping -c 1 -W 10 10.0.2.2) || fail "the first packet after idling is lost: $out"
first=$(sed -n 's/.*time=\([0-9.]* ms\).*/\1/p' <<<"$out")
pass "$((share / 10)).$((share % 10)) percent of a core, first packet $first"
