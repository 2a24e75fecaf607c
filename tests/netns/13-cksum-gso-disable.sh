#!/usr/bin/env bash
# TCP both ways through interfaces that take no offloads: the router completes checksums and cuts the hosts' segments of
# 64 kB itself. veth vouches for nothing that was cut, so the receiving kernel verifies every checksum.
. "$(dirname "$0")/lib.sh"
need iperf3 python3
hosts
start_router cpu { workers 1 }
attach va 10.0.1.1/24 cksum-gso-disable
attach vb 10.0.2.1/24 qdisc-bypass-enable
says cksum-gso-enabled ctl show hardware-interfaces && fail "an interface says it takes offloads"
await 5 in_a ping -c 1 -W 1 10.0.2.2 || fail "no answer from host b"
in_b iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
await 5 listens "$B" 5201 || fail "iperf3 does not listen at host b"
# received NAMESPACE: frames and bytes that came in by eth0.
received() { ip netns exec "$1" cat /sys/class/net/eth0/statistics/rx_{packets,bytes} | xargs; }
for way in '' -R; do
  to=$B
  [ -z "$way" ] || to=$A
  read -r packets bytes < <(received "$to")
  # shellcheck disable=SC2086
  in_a iperf3 -c 10.0.2.2 -t 4 -J $way >"$work/iperf.json" 2>&1 || fail "iperf3 $way: $(head -c 400 "$work/iperf.json")"
  got=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["end"]["sum_received"]["bytes"])' "$work/iperf.json")
  [ "$got" -ge 10000000 ] || fail "only $got bytes in 4 seconds (iperf3 $way)"
  read -r packets_after bytes_after < <(received "$to")
  mean=$(((bytes_after - bytes) / (packets_after - packets)))
  [ "$mean" -le 1514 ] || fail "frames of $mean bytes on average: not cut (iperf3 $way)"
  [ "$mean" -ge 1000 ] || fail "frames of $mean bytes on average: cut too small (iperf3 $way)"
done
for ns in "$A" "$B"; do
  bad=$(ip netns exec "$ns" awk '/^Tcp:/ && $2 ~ /[0-9]/ { print $16 }' /proc/net/snmp)
  [ "$bad" -eq 0 ] || fail "$bad segments with a wrong checksum"
done
for interface in host-va host-vb; do
  for what in rx-error tx-error; do
    count=$(counter "$interface" "$what")
    [ "$count" -eq 0 ] || fail "$interface counts $count $what"
  done
done
out=$(ctl create host-interface name va cksum-gso-disabled 2>&1) && fail "a misspelt word is accepted"
grep -q 'cksum-gso-disable' <<<"$out" || fail "the refusal does not name the right word: $out"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$((got / 500000)) Mbit/s"
