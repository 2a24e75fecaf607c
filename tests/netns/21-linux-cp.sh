#!/usr/bin/env bash
# Linux programs behind the router's own addresses: a web server and iperf3 in a namespace of their own are reached by
# host a at the address of the router's port, with default offloads, both ways and in both families; ping both ways.
. "$(dirname "$0")/lib.sh"
need ping python3 iperf3
begin
ip netns exec "$A" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
beside

# Without an image the router refuses.
refused() { ! in_a python3 -c 'import socket; socket.create_connection(("10.0.1.1", 8000), 2)' 2>/dev/null; }
refused || fail "somebody answers at port 8000"
expect "lcp-sync" ctl lcp lcp-sync on
expect "lcp create" ctl lcp create host-va host-if e0 netns "$L"
expect "interface address" ctl set interface ip address host-va 2001:db8:1::1/64
says 'itf-pair: \[0\] host-va tap0 e0 ' ctl show lcp || fail "show lcp: $(ctl show lcp)"
mirrored() {
  ip -n "$L" addr show dev e0 | grep -q '10.0.1.1/24' &&
    ip -n "$L" -6 addr show dev e0 | grep '2001:db8:1::1/64' | grep -qv tentative
}
await 10 mirrored || fail "the addresses are not in Linux: $(ip -n "$L" addr)"

mkdir "$work/web" && echo 'hello from Linux' >"$work/web/index.html"
ip netns exec "$L" python3 -m http.server -d "$work/web" --bind :: 8000 >"$work/web.log" 2>&1 &
in_l iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
await 5 listens "$L" 8000 || fail "no web server: $(cat "$work/web.log")"
await 5 listens "$L" 5201 || fail "iperf3 does not listen"
for at in 10.0.1.1 '[2001:db8:1::1]'; do
  out=$(in_a python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())' "http://$at:8000/" 2>&1)
  grep -q 'hello from Linux' <<<"$out" || fail "the web server at $at said: $(tail -n 1 <<<"$out"); $(ctl show errors)"
done
for at in 10.0.1.1 2001:db8:1::1; do
  in_a ping -c 2 -i 0.2 -W 2 "$at" >/dev/null || fail "the router does not answer ping at $at"
done
for at in 10.0.1.2 2001:db8:1::2; do
  in_l ping -c 2 -i 0.2 -W 2 "$at" >/dev/null || fail "Linux behind the router has no answer from $at: $(ctl show errors)"
done
said=
for at in 10.0.1.1 2001:db8:1::1; do
  for way in '' -R; do
    # shellcheck disable=SC2086
    in_a iperf3 -c "$at" -t 3 -J $way >"$work/iperf.json" 2>&1 || fail "iperf3 $at $way: $(head -c 400 "$work/iperf.json")"
    bytes=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["end"]["sum_received"]["bytes"])' "$work/iperf.json")
    [ "$bytes" -ge 10000000 ] || fail "only $bytes bytes in 3 seconds ($at $way)"
    said="$said $((bytes * 8 / 3000000))"
  done
done

# With lcp-sync the image is down when the router's port is, and the image goes with the pair.
ctl set interface state host-va down
unplugged() { ! ip -n "$L" link show dev e0 | grep -q '[<,]UP[,>]'; }
await 5 unplugged || fail "Linux does not see that the port is down: $(ip -n "$L" link show dev e0)"
ctl set interface state host-va up
await 5 in_a ping -c 1 -W 1 10.0.1.1 || fail "the router does not come back"
expect "lcp delete" ctl lcp delete host-va
gone() { ! ip -n "$L" link show dev e0; }
await 5 gone || fail "the image is still there"
refused || fail "somebody answers at port 8000 after the image has gone"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "Mbit/s:$said"
