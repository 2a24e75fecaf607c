#!/usr/bin/env bash
# Two forwarding tables of one router with a pipe between them: each host's port is in a table of its own, and routes by the pipe are
# all that joins them. Both families and TCP pass, packets go through the pipe, and nothing passes without it.
#
#   host a --- table 0 --- pipe0.0 = pipe0.1 --- table 7 --- host b
. "$(dirname "$0")/lib.sh"
need ping iperf3
hosts
start_router cpu { workers 0 }

# host NAMESPACE NETWORK: the second family of a host; the router is host 1 of the network.
host() {
  in_ns "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0
  ip -n "$1" addr add "2001:db8:$2::2/64" dev eth0 nodad
  ip -n "$1" -6 route replace default via "2001:db8:$2::1"
}
host "$A" 1
host "$B" 2

expect "pipe" ctl pipe create
for family in ip ip6; do expect "table" ctl $family table add 7; done
for link in va vb; do
  expect "interface" ctl create host-interface name "$link"
  expect "state" ctl set interface state "host-$link" up
done
for end in host-vb pipe0.1; do
  expect "table of $end" ctl set interface ip table "$end" 7
  expect "table of $end" ctl set interface ip6 table "$end" 7
done
for on in "host-va 1" "host-vb 2" "pipe0.0 8" "pipe0.1 9"; do
  read -r interface net <<<"$on"
  expect "address" ctl set interface ip address "$interface" "10.0.$net.1/24"
  expect "address" ctl set interface ip address "$interface" "2001:db8:$net::1/64"
done
for end in pipe0.0 pipe0.1; do expect "state" ctl set interface state "$end" up; done

reaches() { in_a ping -c 1 -W 1 "$1"; }
while read -r near far; do
  await 10 reaches "$near" || fail "the router does not answer at $near"
  reaches "$far" >/dev/null && fail "$far is reached without a route by the pipe"
done <<<"10.0.1.1 10.0.2.2
2001:db8:1::1 2001:db8:2::2"

expect "route" ctl ip route add 10.0.2.0/24 via pipe0.0
expect "route" ctl ip route add 2001:db8:2::/64 via pipe0.0
expect "route" ctl ip route add 10.0.1.0/24 table 7 via pipe0.1
expect "route" ctl ip route add 2001:db8:1::/64 table 7 via pipe0.1

before=$(counter pipe0.1 'rx packets')
for to in 10.0.2.2 2001:db8:2::2; do
  await 10 reaches "$to" || fail "no answer from $to: $(ctl show errors)"
  out=$(in_a "$patient_ping" -q -i 0.01 -c 100 -W 10 "$to")
  grep -q ' 0% packet loss' <<<"$out" || fail "$to: $out"
done
passed=$(($(counter pipe0.1 'rx packets') - before))
[ "$passed" -ge 200 ] || fail "only $passed packets came out of the pipe: $(ctl show interface)"
# Each table routes once.
[ "$(in_a ping -c 1 -W 1 10.0.2.2 | sed -n 's/.*ttl=\([0-9]*\).*/\1/p')" = 62 ] || fail "packets are not routed twice"

# stream ADDRESS: TCP for a second.
stream() {
  local rate
  rate=$(in_a iperf3 -c "$1" -t 1 -J 2>/dev/null | awk '/"bits_per_second"/ { gsub(",", ""); r = $2 } END { printf "%d", r / 1e6 }')
  [ "${rate:-0}" -gt 10 ] || fail "TCP to $1 makes ${rate:-0} Mbit/s: $(ctl show errors)"
  echo "  TCP to $1: $rate Mbit/s"
}
in_b iperf3 -s -D >/dev/null || fail "iperf3 does not start"
await 5 listens "$B" 5201 || fail "iperf3 does not listen"
stream 10.0.2.2
stream 2001:db8:2::2

# An end that is down carries nothing; up again it does. Without the pipe there is no way.
expect "state" ctl set interface state pipe0.1 down
reaches 10.0.2.2 >/dev/null && fail "a pipe whose end is down carries packets"
expect "state" ctl set interface state pipe0.1 up
await 10 reaches 10.0.2.2 || fail "the pipe stays down: $(ctl show errors)"
expect "delete" ctl pipe delete pipe0
reaches 10.0.2.2 >/dev/null && fail "a pipe that is deleted carries packets"
ctl show interface | grep -q pipe0 && fail "the ends stay: $(ctl show interface)"
await 10 no_buffers_used || fail "$(buffers_used) buffers stay in use"
alive
pass "$passed packets out of the pipe"
