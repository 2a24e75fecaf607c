#!/usr/bin/env bash
# IPv6 between real hosts: neighbour discovery both ways, ping, the router as first hop, TCP with default offloads, and
# a host that configures itself from the router's advertisement.
. "$(dirname "$0")/lib.sh"
need ping iperf3 python3 traceroute
begin
for end in "$A va 1" "$B vb 2"; do
  read -r ns port n <<<"$end"
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
  expect "interface address" ctl set interface ip address "host-$port" "2001:db8:$n::1/64"
done
ip -n "$B" addr add 2001:db8:2::2/64 dev eth0 nodad
ip -n "$B" route replace default via 2001:db8:2::1

# Host a is told nothing: its address and its way out come from the router.
expect "advertised prefix" ctl ip6 nd host-va prefix 2001:db8:1::/64 infinite
ip netns exec "$A" sysctl -qw net.ipv6.conf.eth0.accept_ra=1 net.ipv6.conf.eth0.dad_transmits=0
ip -n "$A" link set eth0 down && ip -n "$A" link set eth0 up
ip -n "$A" route replace default via 10.0.1.1
configured() { ip -n "$A" -6 addr show dev eth0 scope global | grep -q '2001:db8:1:' && ip -n "$A" -6 route | grep -q '^default'; }
await 20 configured || fail "host a has no address from the router: $(ip -n "$A" -6 addr; ip -n "$A" -6 route)"

await 10 in_a ping -6 -c 1 -W 1 2001:db8:2::2 || fail "no answer from host b: $(in_a ping -6 -c 2 -W 1 2001:db8:2::2)"
out=$(in_a "$patient_ping" -6 -q -c 200 -i 0.01 -W 10 2001:db8:2::2)
grep -q ' 0% packet loss' <<<"$out" || fail "$out"
in_a ping -6 -c 1 -W 10 2001:db8:1::1 >/dev/null || fail "the router does not answer on its address"
out=$(in_a traceroute -6 -n -w 1 -q 1 -m 4 2001:db8:2::2 2>&1)
sed -n 2p <<<"$out" | grep -q '2001:db8:1::1' || fail "hop 1 is not the router: $out"
sed -n 3p <<<"$out" | grep -q '2001:db8:2::2' || fail "hop 2 is not host b: $out"
ctl set ip unreachables on
out=$(in_a ping -6 -c 1 -W 1 2001:db8:ffff::1 2>&1)
grep -qi 'unreachable' <<<"$out" || fail "no destination unreachable from the router: $out"

# The router asks by itself: a host by its address, by the one that is on every link, and the way there.
out=$(ctl ping 2001:db8:2::2 repeat 3 interval 0.1 size 2000)
grep -q '3 sent, 3 received, 0% packet loss' <<<"$out" || fail "the router's ping: $out"
near=$(ip -n "$B" -6 addr show dev eth0 scope link | grep -o 'fe80[^/]*')
out=$(ctl ping "$near" source host-vb repeat 2 interval 0.1)
grep -q '2 sent, 2 received, 0% packet loss' <<<"$out" || fail "the router's ping of $near: $out"
out=$(ctl traceroute 2001:db8:2::2 probes 1 interval 1)
grep -q '^1: 2001:db8:2::2:' <<<"$out" || fail "the router's traceroute: $out"

in_b iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
await 5 listens "$B" 5201 || fail "iperf3 does not listen at host b"
in_a iperf3 -6 -c 2001:db8:2::2 -t 3 -J >"$work/iperf.json" 2>&1 || fail "iperf3: $(head -c 400 "$work/iperf.json")"
bytes=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["end"]["sum_received"]["bytes"])' "$work/iperf.json")
[ "$bytes" -ge 10000000 ] || fail "only $bytes bytes in 3 seconds"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$((bytes * 8 / 3000000)) Mbit/s"
