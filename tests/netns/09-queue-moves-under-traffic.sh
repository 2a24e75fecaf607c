#!/usr/bin/env bash
# Receive queues move between two workers while packets flow: none is lost.
. "$(dirname "$0")/lib.sh"
need ping python3
[ "$(nproc)" -ge 2 ] || skip "needs two cores"
begin cpu { workers 2 }
PATIENCE=120 in_a "$patient_ping" -q -i 0.001 -c 5000 10.0.2.2 >"$work/ping" 2>&1 &
ping=$!
moves=0
while kill -0 "$ping" 2>/dev/null; do
  for worker in 0 1; do
    for interface in host-va host-vb; do
      expect "move" ctl set interface rx-placement "$interface" queue 0 worker "$worker"
      moves=$((moves + 1))
    done
  done
done
wait "$ping"
grep -q ' 0% packet loss' "$work/ping" || fail "after $moves moves: $(tail -n 3 "$work/ping")"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$moves moves"
