#!/usr/bin/env bash
# Real hosts behind NAT66 and NPTv6: host a's addresses are inside ones, host b sees others. Ping (in fragments, too), TCP, UDP,
# traceroute and ICMPv6 errors, both ways.
. "$(dirname "$0")/lib.sh"
need ping tcpdump iperf3 traceroute python3
begin
for ns in "$A" "$B"; do
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
  # traceroute uses up what Linux sends of these in a second.
  ip netns exec "$ns" sysctl -qw net.ipv6.icmp.ratelimit=0
done
ip -n "$A" addr add fd00::2/64 dev eth0 nodad
ip -n "$A" addr add fd01:0:0:1::2/64 dev eth0 nodad
ip -n "$A" route replace default via fd00::1
ip -n "$B" addr add 2001:db8:2::2/64 dev eth0 nodad
ip -n "$B" route replace default via 2001:db8:2::1
expect "inside" ctl set interface ip address host-va fd00::1/64
expect "inside" ctl set interface ip address host-va fd01:0:0:1::1/64
expect "outside" ctl set interface ip address host-vb 2001:db8:2::1/64

expect "nat66" ctl nat66 plugin enable
expect "sides" ctl set interface nat66 in host-va out host-vb
expect "mapping" ctl nat66 add static mapping local fd00::2 external 2001:db8:f::2
expect "npt66" ctl set npt66 binding interface host-vb internal fd01::/48 external 2001:db8:100::/48

ip netns exec "$B" tcpdump -i eth0 -Unn --immediate-mode -w "$work/b.pcap" ip6 2>"$work/b.log" &
helpers+=($!)
await 10 says "listening on" cat "$work/b.log" || fail "tcpdump: $(cat "$work/b.log")"

b=2001:db8:2::2
await 10 in_a ping -6 -c 1 -W 1 -I fd00::2 $b || fail "no answer through NAT66: $(in_a ping -6 -c 2 -W 1 -I fd00::2 $b)"
await 10 in_a ping -6 -c 1 -W 1 -I fd01:0:0:1::2 $b || fail "no answer through NPTv6: $(in_a ping -6 -c 2 -W 1 -I fd01:0:0:1::2 $b)"

# What b sees is where a is reached.
npt=$(tcpdump -r "$work/b.pcap" -nn 'src net 2001:db8:100::/48' 2>/dev/null | grep -om1 '2001:db8:100:[0-9a-f:]*')
[ -n "$npt" ] || fail "b saw no address of the external prefix"

# Port, the outside address and the inside one.
try() {
  local port=$1 outside=$2 inside=$3
  in_a "$patient_ping" -6 -q -i 0.02 -c 20 -W 2 -I "$inside" $b | grep -q ' 0% packet loss' || fail "ping from $inside"
  in_a "$patient_ping" -6 -q -i 0.05 -c 5 -s 3000 -W 2 -I "$inside" $b | grep -q ' 0% packet loss' || fail "ping in fragments from $inside"
  in_b "$patient_ping" -6 -q -i 0.05 -c 5 -W 2 "$outside" | grep -q ' 0% packet loss' || fail "ping to $outside"
  in_b iperf3 -s -p "$port" -1 -D
  await 5 listens "$B" "$port" || fail "iperf3 does not listen"
  expect "tcp out" in_a iperf3 -6 -B "$inside" -c $b -p "$port" -t 1
  in_a iperf3 -s -p "$port" -1 -D
  await 5 listens "$A" "$port" || fail "iperf3 does not listen"
  expect "tcp in" in_b iperf3 -6 -c "$outside" -p "$port" -t 1
  says "fd00::1\|fd01:0:0:1::1" in_a traceroute -6 -n -w 1 -q 1 -m 3 -s "$inside" $b || fail "traceroute does not show the router"
  says "$b" in_a traceroute -6 -n -w 1 -q 1 -m 3 -s "$inside" $b || fail "traceroute does not show the host"
  # Nothing listens there: the error says so to the program that sent.
  local sends='import socket, sys
s = socket.socket(socket.AF_INET6, type=2); s.settimeout(5); s.bind((sys.argv[1], 0)); s.connect((sys.argv[2], 9)); s.send(b"x"); s.recv(9)'
  says "refused" in_a python3 -c "$sends" "$inside" $b || fail "an error does not reach $inside"
  says "refused" in_b python3 -c "$sends" $b "$outside" || fail "an error of $inside does not reach b"
}
try 5201 2001:db8:f::2 fd00::2
try 5202 "$npt" fd01:0:0:1::2

kill "${helpers[0]}"
seen=$(tcpdump -r "$work/b.pcap" -nn 'src net fc00::/7' 2>/dev/null | wc -l)
[ "$seen" -eq 0 ] || fail "b saw $seen packets with an inside address"
says "total pkts [1-9]" ctl show nat66 static mappings || fail "the mapping counts nothing"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass
