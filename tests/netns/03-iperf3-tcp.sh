#!/usr/bin/env bash
# TCP both ways with the kernel's default offloads (checksums left to the device, segments of 64 kB). How fast is
# never asserted: that it moves, and that nothing is counted as an error, is.
. "$(dirname "$0")/lib.sh"
need iperf3 python3
begin
in_b iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
await 5 listens "$B" 5201 || fail "iperf3 does not listen at host b"
for way in '' -R; do
  # shellcheck disable=SC2086
  in_a iperf3 -c 10.0.2.2 -t 4 -J $way >"$work/iperf.json" 2>&1 || fail "iperf3 $way: $(head -c 400 "$work/iperf.json")"
  bytes=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["end"]["sum_received"]["bytes"])' "$work/iperf.json")
  [ "$bytes" -ge 10000000 ] || fail "only $bytes bytes in 4 seconds (iperf3 $way)"
done
for interface in host-va host-vb; do
  for what in rx-error tx-error; do
    count=$(counter "$interface" "$what")
    [ "$count" -eq 0 ] || fail "$interface counts $count $what"
  done
done
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$((bytes / 500000)) Mbit/s"
