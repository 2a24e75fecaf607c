#!/usr/bin/env bash
# Long packets between real hosts, both families: path MTU discovery through a smaller link, path MTUs that an operator
# sets, fragments for the router itself, and fragments that the router puts together.
. "$(dirname "$0")/lib.sh"
need ping iperf3 python3 tcpdump
C=shoal-c-$$
cleanup_c() {
  [ ! -e "/run/netns/$C" ] || ip netns del "$C"
  cleanup
}
trap cleanup_c EXIT
begin
# The default route is ours alone: of two, one from an advertisement, only the one a flow took would learn an MTU.
for end in "$A va 1" "$B vb 2"; do
  read -r ns port n <<<"$end"
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 net.ipv6.conf.eth0.accept_ra=0 || skip "the kernel has no IPv6"
  expect "interface address" ctl set interface ip address "host-$port" "2001:db8:$n::1/64"
  ip -n "$ns" addr add "2001:db8:$n::2/64" dev eth0 nodad
  ip -n "$ns" route replace default via "2001:db8:$n::1"
done
await 10 in_a ping -6 -c 1 -W 1 2001:db8:2::2 || fail "no answer from host b over IPv6"

# Fragments for the router's own addresses, which answers in fragments.
expect "4,000 bytes to the router" in_a ping -c 5 -i 0.05 -W 2 -s 4000 10.0.1.1
expect "4,000 bytes to the router" in_a ping -6 -c 5 -i 0.05 -W 2 -s 4000 2001:db8:1::1
expect "60,000 bytes to the router" in_a ping -c 2 -i 0.05 -W 2 -s 60000 10.0.1.1
expect "60,000 bytes to the router" in_a ping -6 -c 2 -i 0.05 -W 2 -s 60000 2001:db8:1::1
says '^Number of IP4 reassemblies: 0$' ctl show ip4-full-reassembly || fail "$(ctl show ip4-full-reassembly)"

# The link to host b is smaller: senders learn how small. 1,400 for IPv4, 1,280 for IPv6.
expect "mtu" ctl set interface mtu ip4 1400 host-vb
expect "mtu" ctl set interface mtu ip6 1280 host-vb
says '/1400/1280/0' ctl show interface host-vb || fail "$(ctl show interface host-vb)"
out=$(in_a ping -c 1 -W 2 -M do -s 1400 10.0.2.2 2>&1)
grep -qi 'mtu *= *1400' <<<"$out" || fail "no 'fragmentation needed' with MTU 1400: $out"
out=$(in_a ping -6 -c 1 -W 2 -M do -s 1300 2001:db8:2::2 2>&1)
grep -qi 'mtu *= *1280' <<<"$out" || fail "no 'packet too big' with MTU 1280: $out"
expect "the longest that fits" in_a ping -c 1 -W 2 -M do -s 1372 10.0.2.2
expect "the longest that fits" in_a ping -6 -c 1 -W 2 -M do -s 1232 2001:db8:2::2
in_a ip route flush cache
in_a ip -6 route flush cache
in_b iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
await 5 listens "$B" 5201 || fail "iperf3 does not listen at host b"
rates=
for to in "-4 10.0.2.2" "-6 2001:db8:2::2"; do
  # shellcheck disable=SC2086
  in_a iperf3 ${to% *} -c "${to#* }" -t 2 -J >"$work/iperf.json" 2>&1 || fail "iperf3 $to: $(head -c 400 "$work/iperf.json")"
  bytes=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["end"]["sum_received"]["bytes"])' "$work/iperf.json")
  [ "$bytes" -ge 2000000 ] || fail "only $bytes bytes in 2 seconds to $to"
  rates="$rates $((bytes * 8 / 2000000)) Mbit/s"
done
says 'mtu 1400' in_a ip -4 route get 10.0.2.2 || fail "host a did not learn the MTU: $(in_a ip -4 route get 10.0.2.2)"
says 'mtu 1280' in_a ip -6 route get 2001:db8:2::2 || fail "host a did not learn the MTU: $(in_a ip -6 route get 2001:db8:2::2)"
expect "mtu" ctl set interface mtu ip4 0 host-vb
expect "mtu" ctl set interface mtu ip6 0 host-vb
in_a ip route flush cache
in_a ip -6 route flush cache

# A path MTU to one host: it alone is concerned, and packets that may be cut are.
expect "path MTU" ctl set ip pmtu 10.0.2.2 1000
expect "path MTU" ctl set ip pmtu 2001:db8:2::2 1300
says '^10.0.2.2 table:0 pmtu:1000$' ctl show ip pmtu || fail "$(ctl show ip pmtu)"
out=$(in_a ping -c 1 -W 2 -M do -s 1200 10.0.2.2 2>&1)
grep -qi 'mtu *= *1000' <<<"$out" || fail "no 'fragmentation needed' with MTU 1000: $out"
out=$(in_a ping -6 -c 1 -W 2 -M do -s 1300 2001:db8:2::2 2>&1)
grep -qi 'mtu *= *1300' <<<"$out" || fail "no 'packet too big' with MTU 1300: $out"
in_a ip route flush cache
expect "fragments made by the router" in_a ping -c 3 -i 0.05 -W 2 -M dont -s 1400 10.0.2.2
expect "path MTU" ctl set ip pmtu 10.0.2.2 del
expect "path MTU" ctl set ip pmtu 2001:db8:2::2 del
out=$(ctl set ip pmtu 2001:db8:2::2 1279 2>&1) && fail "a path MTU of 1279 was taken"
grep -q 'nearest 1280' <<<"$out" || fail "no nearest value: $out"
in_a ip route flush cache
in_a ip -6 route flush cache

# Host c is behind host b and a smaller link. The router's own packets are too long for that: it gets an error, and
# learns.
ip netns add "$C" || fail "cannot make a third host"
ip -n "$B" link add toc mtu 1300 type veth peer name eth0 mtu 1300 netns "$C" || fail "cannot make a veth pair"
ip netns exec "$B" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
ip -n "$C" link set lo up
for end in "$B toc 1" "$C eth0 2"; do
  read -r ns port n <<<"$end"
  ip netns exec "$ns" sysctl -qw "net.ipv6.conf.$port.disable_ipv6=0"
  ip -n "$ns" addr add "10.0.3.$n/24" dev "$port"
  ip -n "$ns" addr add "2001:db8:3::$n/64" dev "$port" nodad
  ip -n "$ns" link set "$port" up
done
ip -n "$C" route add default via 10.0.3.1
ip -n "$C" route add default via 2001:db8:3::1
expect "route" ctl ip route add 10.0.3.0/24 via 10.0.2.2 host-vb
expect "route" ctl ip route add 2001:db8:3::/64 via 2001:db8:2::2 host-vb
await 10 in_ns "$C" ping -6 -c 1 -W 1 2001:db8:2::1 || fail "no answer to host c: $(ctl show errors)"
learnt() {
  in_ns "$C" ping -6 -c 1 -W 1 -s 1400 2001:db8:2::1 >/dev/null
  ctl show ip pmtu | grep -q '^2001:db8:3::2 table:0 pmtu:1300 learnt:1300 age:[0-9]*s expires:[0-9]*s$'
}
await 10 learnt || fail "no path MTU learnt: $(ctl show ip pmtu; ctl show errors)"
expect "answers that fit" in_ns "$C" ping -6 -c 3 -i 0.2 -W 2 -s 1400 2001:db8:2::1
expect "learning" ctl set ip pmtu-learning off
ctl show ip pmtu | grep -q '^no path MTUs$' || fail "$(ctl show ip pmtu)"
expect "learning" ctl set ip pmtu-learning on
ip netns exec "$B" sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
ip -n "$B" route replace default via 2001:db8:2::1

# What host a sends in fragments leaves in one piece where the router puts it together and the link takes it.
ip -n "$R" link set vb mtu 9000
ip -n "$B" link set eth0 mtu 9000
expect "mtu" ctl set interface mtu packet 9000 host-vb
expect "reassembly" ctl set interface reassembly host-va on
in_ns "$B" timeout 20 tcpdump -n -i eth0 -c 2 'src host 10.0.1.2 and icmp or src host 2001:db8:1::2 and (icmp6 or ip6[6] = 44)' \
  >"$work/dump" 2>"$work/dump.err" &
helpers+=($!)
await 5 grep -q listening "$work/dump.err" || fail "tcpdump: $(cat "$work/dump.err")"
in_a ping -c 1 -W 2 -s 4000 10.0.2.2 >/dev/null || fail "no answer to 4,000 bytes: $(ctl show errors)"
# Host b answers in one piece at first, and learns that the way back is smaller.
in_a ping -6 -c 3 -i 0.2 -W 2 -s 4000 2001:db8:2::2 >/dev/null || fail "no answer to 4,000 bytes over IPv6: $(ctl show errors)"
seen() { [ "$(grep -c 'length 4008' "$work/dump")" -eq 2 ]; }
await 5 seen || fail "host b did not see two packets of 4,008 bytes: $(cat "$work/dump")"
grep -qi frag "$work/dump" && fail "host b saw fragments: $(cat "$work/dump")"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$rates"
