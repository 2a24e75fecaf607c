#!/usr/bin/env bash
# Hosts that send tagged frames, with one tag and with two, on a host-interface and on a TAP: ping of both families, fragments,
# TCP whose segments and checksums are left to the devices; sub-interfaces that go and come back under traffic; images of
# sub-interfaces in Linux; all VLANs of a port made, used and deleted beside pings. The kernel needs no VLANs for it: vlan.py
# puts tags in and takes them out.
#
#   host a: v100 (802.1Q 100), v20 (802.1ad 10, 20), v300 --- eth0 - va   router   tap0 - eth1 --- v200 (802.1Q 200): host b
# LIMIT=300
: "${VLANS:=4094}" "${MOST_MS:=}"
# ALONE=how long pings take is limited
. "$(dirname "$0")/lib.sh"
need ping iperf3 python3
[ -c /dev/net/tun ] || skip "no /dev/net/tun"
begin cpu { workers 0 } socksvr { socket-name "$work/api.sock" }

# vlan NAMESPACE DEVICE NAME TAGS ADDRESS GATEWAY ADDRESS6: a host's interface on a VLAN.
vlan() {
  ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.accept_dad=0
  ip netns exec "$1" python3 "$(dirname "$0")/vlan.py" "$2" "$3" "$4" >"$work/$3.log" 2>&1 &
  helpers+=($!)
  await 10 says ready cat "$work/$3.log" || fail "vlan.py: $(cat "$work/$3.log")"
  ip -n "$1" addr add "$5" dev "$3"
  ip -n "$1" link set "$3" up
  ip -n "$1" addr add "$7/64" dev "$3" nodad
}
# sub NAME ADDRESS ADDRESS6: a sub-interface that is there already gets addresses and goes up.
sub() {
  expect "state of $1" ctl set interface state "$1" up
  expect "address of $1" ctl set interface ip address "$1" "$2"
  expect "address of $1" ctl set interface ip address "$1" "$3"
}
expect "create tap" ctl create tap id 0 host-if-name eth1 host-ns "$B" gso
expect "tap up" ctl set interface state tap0 up
ip -n "$B" link set eth1 up
expect "sub-interface" ctl create sub-interfaces host-va 100
expect "sub-interface" ctl create sub-interfaces host-va 20 dot1ad 10 inner-dot1q 20 exact-match
expect "sub-interface" ctl create sub-interfaces tap0 200 dot1q 200 exact-match
# Two tags are longer than the one that a device lets pass beyond its MTU.
ip -n "$A" link set eth0 mtu 1600
ip -n "$R" link set va mtu 1600
await 5 says "host-va  *1  *up  *1600" ctl show interface host-va || fail "the port does not follow its device's MTU"
for n in 100 20; do expect "MTU of a sub-interface" ctl set interface mtu 1500 "host-va.$n"; done
sub host-va.100 10.1.100.1/24 2001:db8:100::1/64
sub host-va.20 10.1.20.1/24 2001:db8:20::1/64
sub tap0.200 10.1.200.1/24 2001:db8:200::1/64
vlan "$A" eth0 v100 0x8100:100 10.1.100.2/24 10.1.100.1 2001:db8:100::2
vlan "$A" eth0 v20 0x88a8:10,0x8100:20 10.1.20.2/24 10.1.20.1 2001:db8:20::2
vlan "$B" eth1 v200 0x8100:200 10.1.200.2/24 10.1.200.1 2001:db8:200::2
for n in 100 20; do
  ip -n "$B" route add "10.1.$n.0/24" via 10.1.200.1
  ip -n "$B" -6 route add "2001:db8:$n::/64" via 2001:db8:200::1
done
ip -n "$A" route add 10.1.200.0/24 via 10.1.100.1
ip -n "$A" -6 route add 2001:db8:200::/64 via 2001:db8:100::1

for to in 10.1.100.1 10.1.20.1 10.1.200.2 2001:db8:100::1 2001:db8:20::1 2001:db8:200::2; do
  await 10 in_a ping -c 1 -W 1 "$to" || fail "no answer from $to"
  expect "ping $to" in_a ping -q -i 0.05 -c 10 -W 2 "$to"
  expect "ping $to with fragments" in_a ping -q -s 4000 -c 2 -W 2 "$to"
done
expect "ping by two tags" in_b ping -q -c 3 -W 2 10.1.20.2
expect "the largest packet" in_a ping -q -M "do" -s 1472 -c 2 -W 2 10.1.200.2
! in_a ping -q -M "do" -s 1480 -c 1 -W 2 10.1.200.2 >/dev/null 2>&1 || fail "a packet longer than the MTU passed"
expect "a smaller MTU" ctl set interface mtu 1300 tap0.200
! in_a ping -M "do" -s 1400 -c 1 -W 1 10.1.200.2 >"$work/big" 2>&1 || fail "a packet longer than the sub-interface's MTU passed"
says "mtu = 1300\|mtu=1300" cat "$work/big" || fail "the sender was not told the MTU: $(cat "$work/big")"
expect "the port's MTU" ctl set interface mtu 0 tap0.200
in_a ip route flush cache

# TCP both ways: whole segments from TAPs and veths, cut or completed by the sender on the wire.
in_b iperf3 -s -D -I "$work/iperf.pid" --logfile "$work/iperf.log"
await 5 listens "$B" 5201 || fail "iperf3 does not listen"
rates=
for way in "-c 10.1.200.2" "-c 10.1.200.2 -R" "-6 -c 2001:db8:200::2" "-6 -c 2001:db8:200::2 -R" "-B 10.1.20.2 -c 10.1.200.2"; do
  [[ $way != *-B* ]] || { ip -n "$A" route del 10.1.200.0/24; ip -n "$A" route add 10.1.200.0/24 via 10.1.20.1; }
  # shellcheck disable=SC2086
  in_a iperf3 $way -t 2 -J >"$work/iperf.json" || fail "iperf3 $way: $(tail -n 5 "$work/iperf.json")"
  bytes=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["end"]["sum_received"]["bytes"])' "$work/iperf.json")
  [ "$bytes" -ge 2000000 ] || fail "only $bytes bytes in 2 seconds by iperf3 $way"
  rates+=" $((bytes * 4 / 1000000))"
done
ip -n "$A" route del 10.1.200.0/24; ip -n "$A" route add 10.1.200.0/24 via 10.1.100.1

# Sub-interfaces go and come back under traffic; what was on its way is dropped and counted, and no buffer stays.
PATIENCE=120 in_a ping -q -f -w 30 10.1.200.2 >"$work/flood" 2>&1 &
flood=$!
for _ in 1 2 3 4 5 6 7 8; do
  expect "delete under traffic" ctl delete sub-interface tap0.200
  expect "create under traffic" ctl create sub-interfaces tap0 200
  sub tap0.200 10.1.200.1/24 2001:db8:200::1/64
  await 10 in_a ping -c 1 -W 1 10.1.200.2 || fail "no answer after the sub-interface came back"
done
kill -INT "$(pgrep -f "ping -q -f -w 30 10.1.200.2" | tail -n 1)" 2>/dev/null
wait "$flood"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are in use"

# Images in Linux: untagged frames there, tagged ones on the wire, with no VLANs of the kernel.
expect "auto-subint" ctl lcp lcp-auto-subint on
expect "image of the port" ctl lcp create host-va host-if e0 netns "$R"
expect "image of a sub-interface" ctl create sub-interfaces host-va 300
expect "sub up" ctl set interface state host-va.300 up
says "host-va.300 tap[0-9]* e0.300 [0-9]* type tap netns $R" ctl show lcp || fail "no image of host-va.300: $(ctl show lcp)"
expect "address in Linux" ip -n "$R" addr add 10.1.44.1/24 dev e0.300
expect "image up" ip -n "$R" link set e0.300 up
await 5 says 10.1.44.1/24 ctl show interface address host-va.300 || fail "the image's address is not the sub-interface's"
vlan "$A" eth0 v300 0x8100:300 10.1.44.2/24 10.1.44.1 2001:db8:44::2
await 10 in_a ping -c 1 -W 1 10.1.44.1 || fail "the sub-interface with an image does not answer"
expect "Linux pings by a sub-interface" in_r ping -q -c 3 -W 2 -I e0.300 10.1.44.2
in_r iperf3 -s -D -p 5300 -I "$work/iperf3.pid" --logfile "$work/iperf3.log"
await 5 listens "$R" 5300 || fail "iperf3 does not listen"
expect "TCP to Linux by a sub-interface" in_a iperf3 -c 10.1.44.1 -p 5300 -t 1
expect "delete the sub-interface" ctl delete sub-interface host-va.300
await 5 says "does not exist" ip -n "$R" link show e0.300 || fail "the image is still there"

# All VLANs of a port, beside pings.
PATIENCE=200 in_a ping -q -i 0.01 -W 2 10.1.200.2 >"$work/ping" 2>&1 &
pinging=$!
begun=$(date +%s.%N)
expect "all VLANs" ctl create sub-interfaces host-vb "1-$VLANS"
made=$(date +%s.%N)
expect "port down" ctl set interface state host-vb down
expect "port up" ctl set interface state host-vb up
expect "port's MTU" ctl set interface mtu 1400 host-vb
seq -f "delete sub-interface host-vb.%.0f" "$VLANS" >"$work/gone.cli"
flapped=$(date +%s.%N)
CTL_TIMEOUT=120 expect "delete all VLANs" ctl -f "$work/gone.cli"
gone=$(date +%s.%N)
sleep 1
kill -INT "$(pgrep -f "ping -q -i 0.01 -W 2 10.1.200.2" | tail -n 1)"
wait "$pinging"
alive
pings_answered "$work/ping" || fail "pings were lost: $(tail -2 "$work/ping")"
slowest=$(awk -F/ '/^rtt/ { print $6 }' "$work/ping")
# None waits for all of a command to end, however slow the machine is.
: "${MOST_MS:=$(awk -v a="$begun" -v d="$gone" 'BEGIN { print 250 * (d - a) }')}"
awk -v s="$slowest" -v m="$MOST_MS" 'BEGIN { exit !(s < m) }' || fail "a ping took $slowest ms, at most $MOST_MS"
! ctl show interface | grep -q '^host-vb\.' || fail "sub-interfaces are left"
await 10 no_buffers_used || fail "$(buffers_used) buffers are in use"
times=$(awk -v a="$begun" -v b="$made" -v c="$flapped" -v d="$gone" 'BEGIN { printf "made in %.2f s, flapped in %.2f s, deleted in %.2f s", b - a, c - b, d - c }')
pass "TCP Mbit/s:$rates; $VLANS VLANs $times, slowest ping $slowest ms"
