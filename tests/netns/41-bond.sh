#!/usr/bin/env bash
# Two routers with a bond of two links between them: LACP brings it up, both families and TCP pass, a link that is cut is left at
# once, one whose other end falls silent after three seconds, and both come back. Then active-backup in its place.
#
#   host a --- router === two links === second router --- host b
. "$(dirname "$0")/lib.sh"
need ping iperf3
hosts
S=shoal-s-$id
ip netns add "$S" || fail "cannot make namespaces"
ip -n "$S" link set lo up
for n in 0 1; do
  # The kernel at both ends says nothing of its own.
  ip link add "l$n" netns "$R" type veth peer name "m$n" netns "$S" || fail "cannot make the links"
  in_r sysctl -qw "net.ipv6.conf.l$n.disable_ipv6=1"
  in_ns "$S" sysctl -qw "net.ipv6.conf.m$n.disable_ipv6=1"
  ip -n "$R" link set "l$n" up
  ip -n "$S" link set "m$n" up
done
ip -n "$R" link set vb netns "$S"
ip -n "$S" link set vb up
start_router cpu { workers 0 }
mkdir -p "$work/run2"
ip netns exec "$S" "$SHOAL" unix { nodaemon nosyslog runtime-dir "$work/run2" } configuration { directory "$work/lib2" } \
  cpu { workers 0 } >"$work/second.log" 2>&1 &
second=$!
helpers+=("$second")
second() { timeout "${CTL_TIMEOUT:-20}" "$SHOALCTL" -s "$work/run2/cli.sock" "$@"; }
await 10 second show version || fail "the second router does not answer: $(cat "$work/second.log")"

# bond COMMAND LINK OWN OTHER FAR MODE...: a bond over two links, with addresses and routes to what is behind the other end.
bond() {
  local ctl=$1 link=$2 own=$3 other=$4 far=$5
  shift 5
  expect "create bond" "$ctl" create bond mode "$@" id 0
  for n in 0 1; do
    "$ctl" create host-interface name "$link$n" >/dev/null 2>&1
    expect "interface state" "$ctl" set interface state "host-$link$n" up
    expect "bond add" "$ctl" bond add BondEthernet0 "host-$link$n"
  done
  expect "interface state" "$ctl" set interface state BondEthernet0 up
  expect "address" "$ctl" set interface ip address BondEthernet0 "10.0.9.$own/24"
  expect "address" "$ctl" set interface ip address BondEthernet0 "2001:db8:9::$own/64"
  expect "route" "$ctl" ip route add "10.0.$far.0/24" via "10.0.9.$other" BondEthernet0
  expect "route" "$ctl" ip route add "2001:db8:$far::/64" via "2001:db8:9::$other" BondEthernet0
}
attach va 10.0.1.1/24
expect "address" ctl set interface ip address host-va 2001:db8:1::1/64
expect "interface" second create host-interface name vb
expect "state" second set interface state host-vb up
expect "address" second set interface ip address host-vb 10.0.2.1/24
expect "address" second set interface ip address host-vb 2001:db8:2::1/64
for host in "$A 2001:db8:1" "$B 2001:db8:2"; do
  read -r ns net <<<"$host"
  in_ns "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0
  ip -n "$ns" addr add "$net::2/64" dev eth0 nodad
  ip -n "$ns" route add default via "$net::1"
done

bond ctl l 1 2 2 lacp load-balance l34
bond second m 2 1 1 lacp load-balance l34
active() { [ "$("$1" show bond | awk '/^BondEthernet0/ { print $5 }')" = "$2" ]; }
await 10 active ctl 2 || fail "LACP does not agree: $(ctl show lacp; ctl show bond details)"
await 10 active second 2 || fail "LACP does not agree at the other end: $(second show lacp)"
says 'MUX-state: COLLECTING_DISTRIBUTING' ctl show lacp || fail "show lacp says: $(ctl show lacp)"
for to in 10.0.2.2 2001:db8:2::2; do
  await 5 in_a ping -c 1 -W 1 "$to" || fail "no answer from $to"
  out=$(in_a "$patient_ping" -q -i 0.01 -c 100 -W 10 "$to")
  grep -q ' 0% packet loss' <<<"$out" || fail "$out"
done
listens "$B" 5201 || in_b iperf3 -s -1 -D >/dev/null 2>&1
await 5 listens "$B" 5201 || fail "iperf3 does not listen"
rate=$(in_a iperf3 -c 10.0.2.2 -P 8 -t 1 -J 2>"$work/iperf" |
  python3 -c 'import json, sys; print(int(json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 1e6))') ||
  fail "iperf3: $(cat "$work/iperf")"
for n in 0 1; do
  sent=$(ctl show interface "host-l$n" | awk '/tx packets/ { print $NF }')
  [ "${sent:-0}" -gt 50 ] || fail "member $n sent ${sent:-0} packets of eight connections"
done

# lost COUNT COMMAND...: so many pings of each family while the command is run, and how many of each were lost.
lost() {
  local to pings=() lost=() count=$1
  shift
  for to in 10.0.2.2 2001:db8:2::2; do
    PATIENCE=60 in_a ping -q -i 0.01 -c "$count" -W 1 "$to" >"$work/ping-$to" 2>&1 &
    pings+=($!)
  done
  sleep 0.5
  "$@"
  wait "${pings[@]}"
  for to in 10.0.2.2 2001:db8:2::2; do
    lost+=("$(awk '/ packets transmitted/ { print $1 - $4 }' "$work/ping-$to")")
  done
  echo "${lost[*]}"
}
# The cable is pulled: both ends see it.
cut=$(lost 200 ip -n "$R" link set l0 down)
await 5 active ctl 1 || fail "a link without a cable is used: $(ctl show bond details)"
read -r four six <<<"$cut"
[ "$four" -le 50 ] && [ "$six" -le 50 ] || fail "a cut cost $cut pings of 200"
ip -n "$R" link set l0 up
await 10 active ctl 2 && await 10 active second 2 || fail "the link does not come back: $(ctl show lacp)"
# The other end falls silent: three seconds pass.
silent=$(lost 450 second set interface state host-m1 down)
await 5 active ctl 1 || fail "a silent link is used: $(ctl show lacp)"
read -r four six <<<"$silent"
[ "$four" -le 400 ] && [ "$six" -le 400 ] || fail "a silent end cost $silent pings of 450"
expect "state" second set interface state host-m1 up
await 10 active ctl 2 || fail "the link does not come back: $(ctl show lacp)"

# Another mode in its place.
for ctl in ctl second; do
  "$ctl" ip route del "10.0.$([ "$ctl" = ctl ] && echo 2 || echo 1).0/24" >/dev/null 2>&1
  "$ctl" ip route del "2001:db8:$([ "$ctl" = ctl ] && echo 2 || echo 1)::/64" >/dev/null 2>&1
  expect "delete bond" "$ctl" delete bond BondEthernet0
done
bond ctl l 1 2 2 active-backup
bond second m 2 1 1 active-backup
await 10 in_a ping -c 1 -W 1 10.0.2.2 || fail "no answer over active-backup: $(ctl show bond details)"
over=$(lost 200 ip -n "$R" link set l0 down)
read -r four six <<<"$over"
[ "$four" -le 100 ] && [ "$six" -le 100 ] || fail "the backup took over after $over pings of 200"
alive
expect "delete bond" ctl delete bond BondEthernet0
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
kill "$second"
ip netns del "$S" 2>/dev/null
pass "TCP $rate Mbit/s; pings lost when a cable is pulled, an end falls silent, the backup takes over: $cut, $silent, $over"
