#!/usr/bin/env bash
# Two ports of one bridge domain are the ends of one cable, and the hosts of the domain shout. Without protection their frames
# go round for ever. Storm control keeps the loop's share small, loop protection blocks one end: traffic of others goes on, in the
# domain and beside it, and the end is opened again when its time is over.
#
#   host a --- bridge domain 10 --- host b       host c --- routed --- router
#                  |     |
#                  +-----+ a cable
. "$(dirname "$0")/lib.sh"
need ping arping
hosts
C=shoal-c-$id
ip netns add "$C" || fail "cannot make namespaces"
trap 'ip netns del "$C" 2>/dev/null; cleanup' EXIT
cable "$C" vc 10.0.4.2/24 10.0.4.1
ip -n "$R" link add loopx type veth peer name loopy || fail "cannot make the loop"
for end in loopx loopy; do
  in_r sysctl -qw "net.ipv6.conf.$end.disable_ipv6=1"
  ip -n "$R" link set "$end" up
done
start_router cpu { workers 0 }
for on in "$A 2" "$B 3"; do
  read -r ns host <<<"$on"
  ip -n "$ns" addr flush dev eth0 scope global
  ip -n "$ns" addr add "10.0.3.$host/24" dev eth0
done
attach vc 10.0.4.1/24
expect "domain" ctl create bridge-domain 10
for link in va vb loopx loopy; do
  expect "interface" ctl create host-interface name "$link"
  expect "state" ctl set interface state "host-$link" up
  expect "member" ctl set interface l2 bridge "host-$link" 10
done

shout() { in_ns "$A" arping -q -c 1 -w 1 -I eth0 10.0.3.99 || true; }
blocked() { ctl show bridge-domain loops | grep -c 'is blocked,'; }
# reaches NAMESPACE ADDRESS: nine of ten pings are answered.
reaches() {
  local lost
  lost=$(in_ns "$1" ping -q -i 0.02 -c 50 -W 1 "$2" | sed -n 's/.* \([0-9.]*\)% packet loss.*/\1/p')
  [ "${lost%.*}" -le 10 ] 2>/dev/null
}

# Storm control alone: the loop goes on, at a rate that lets others live.
for end in loopx loopy; do
  expect "storm control" ctl set interface l2 storm-control "host-$end" broadcast 100 multicast 100 unknown-unicast 100
done
shout
await 10 says 'host-loopx .*broadcast .*[1-9]$' ctl show bridge-domain storm-control ||
  fail "nothing is dropped: $(ctl show bridge-domain storm-control)"
await 20 reaches "$C" 10.0.4.1 || fail "the router does not answer host c in a storm: $(ctl show errors)"
ctl show bridge-domain storm-control | sed 's/^/  /'
for end in loopx loopy; do expect "off" ctl set interface l2 storm-control "host-$end" off; done

# Loop protection: one end is blocked, within a second or two.
expect "protection" ctl set bridge-domain loop-protection 10 moves 10 block 8
shout
await 20 says '^1$' blocked || fail "no end is blocked: $(ctl show bridge-domain loops; ctl show errors)"
ctl show bridge-domain loops | grep -Eq 'host-loop[xy] is blocked' || fail "a host is blocked: $(ctl show bridge-domain loops)"
# What goes round has ended: the counters of the loop stand still.
await 10 reaches "$A" 10.0.3.3 || fail "host a does not reach host b: $(ctl show errors; ctl show l2fib verbose)"
await 10 reaches "$C" 10.0.4.1 || fail "the router does not answer host c: $(ctl show errors)"
grep -q 'loop in bridge domain 10' "$work/shoal.log" || fail "the log does not say it"
ctl show bridge-domain loops | sed 's/^/  /'

# It is opened again; the loop is seen again as soon as somebody shouts.
await 20 says '^0$' blocked || fail "the end stays blocked: $(ctl show bridge-domain loops)"
shout
await 20 says '^1$' blocked || fail "no end is blocked the second time: $(ctl show bridge-domain loops)"
await 10 reaches "$A" 10.0.3.3 || fail "host a does not reach host b the second time"
alive
pass "$(ctl show bridge-domain loops | sed -n 's/^ *loops seen/loops seen/p')"
