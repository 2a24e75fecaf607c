#!/usr/bin/env bash
# Two hosts in one bridge domain, a third one behind a routed interface; the bridge's routed interface is between them. Both
# families and TCP pass, within the bridge and out of it, also when one of the hosts has its frames tagged.
#
#   host a ---+
#             bridge domain 10 -- bvi0 -- router --- host c
#   host b ---+
. "$(dirname "$0")/lib.sh"
need ping iperf3
hosts
C=shoal-c-$id
ip netns add "$C" || fail "cannot make namespaces"
ip -n "$C" link set lo up
ip link add vc netns "$R" type veth peer name eth0 netns "$C" || fail "cannot make the link"
ip -n "$R" link set vc up
ip -n "$C" link set eth0 up
in_r sysctl -qw net.ipv6.conf.vc.disable_ipv6=1
start_router cpu { workers 0 }
cleanup_c() {
  local pids
  pids=$(ip netns pids "$C" 2>/dev/null)
  # shellcheck disable=SC2086
  [ -z "$pids" ] || kill -9 $pids 2>/dev/null
  ip netns del "$C" 2>/dev/null
  cleanup
}
trap cleanup_c EXIT

# address NAMESPACE DEVICE NETWORK HOST: both families, the router is host 1 of the network.
address() {
  in_ns "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 "net.ipv6.conf.$2.disable_ipv6=0"
  ip -n "$1" addr flush dev "$2" scope global
  ip -n "$1" addr add "10.0.$3.$4/24" dev "$2"
  ip -n "$1" addr add "2001:db8:$3::$4/64" dev "$2" nodad
  ip -n "$1" route replace default via "10.0.$3.1"
  ip -n "$1" -6 route replace default via "2001:db8:$3::1"
}
address "$A" eth0 3 2
address "$B" eth0 3 3
address "$C" eth0 4 2

for link in va vb vc; do
  expect "interface" ctl create host-interface name "$link"
  expect "state" ctl set interface state "host-$link" up
done
expect "domain" ctl create bridge-domain 10
expect "bvi" ctl bvi create
expect "state" ctl set interface state bvi0 up
expect "member" ctl set interface l2 bridge host-va 10
expect "member" ctl set interface l2 bridge host-vb 10
expect "member" ctl set interface l2 bridge bvi0 10 bvi
for on in "bvi0 3" "host-vc 4"; do
  read -r interface net <<<"$on"
  expect "address" ctl set interface ip address "$interface" "10.0.$net.1/24"
  expect "address" ctl set interface ip address "$interface" "2001:db8:$net::1/64"
done

reach() {
  local ns=$1 to
  shift
  for to in "$@"; do
    await 10 in_ns "$ns" ping -c 1 -W 1 "$to" || fail "no answer from $to: $(ctl show errors)"
    out=$(in_ns "$ns" "$patient_ping" -q -i 0.01 -c 100 -W 10 "$to")
    grep -q ' 0% packet loss' <<<"$out" || fail "$to: $out"
  done
}
reach "$A" 10.0.3.3 2001:db8:3::3 10.0.3.1 2001:db8:3::1 10.0.4.2 2001:db8:4::2
reach "$C" 10.0.3.2 2001:db8:3::3
ctl show l2fib verbose | grep -c host-v | grep -qx 2 || fail "two hosts are learned: $(ctl show l2fib verbose)"

# stream NAMESPACE ADDRESS: TCP for a second.
stream() {
  local rate
  rate=$(in_ns "$1" iperf3 -c "$2" -t 1 -J 2>/dev/null | awk '/"bits_per_second"/ { gsub(",", ""); r = $2 } END { printf "%d", r / 1e6 }')
  [ "${rate:-0}" -gt 10 ] || fail "TCP to $2 makes ${rate:-0} Mbit/s"
  echo "  TCP to $2: $rate Mbit/s"
}
for ns in "$B" "$C"; do
  in_ns "$ns" iperf3 -s -D >/dev/null || fail "iperf3 does not start"
  await 5 listens "$ns" 5201 || fail "iperf3 does not listen"
done
stream "$A" 10.0.3.3
stream "$A" 2001:db8:3::3
stream "$A" 10.0.4.2
stream "$A" 2001:db8:4::2

# Host b has its frames tagged; the bridge takes the tag off.
ip -n "$B" addr flush dev eth0 scope global
ip netns exec "$B" python3 "$(dirname "$0")/vlan.py" eth0 v100 0x8100:100 >"$work/vlan.log" 2>&1 &
helpers+=($!)
await 10 says ready cat "$work/vlan.log" || fail "vlan.py: $(cat "$work/vlan.log")"
# As a VLAN interface of the kernel it has the address of the interface below it, which others know.
ip -n "$B" link set v100 address "$(ip -n "$B" -o link show eth0 | grep -o 'link/ether [^ ]*' | cut -d ' ' -f 2)"
ip -n "$B" link set v100 up
address "$B" v100 3 3
expect "l3" ctl set interface l3 host-vb
expect "sub-interface" ctl create sub-interfaces host-vb 100
expect "state" ctl set interface state host-vb.100 up
expect "member" ctl set interface l2 bridge host-vb.100 10
expect "tags" ctl set interface l2 tag-rewrite host-vb.100 pop 1
reach "$A" 10.0.3.3 2001:db8:3::3
reach "$C" 10.0.3.3
stream "$A" 10.0.3.3
pass "$(ctl show bridge-domain | tail -n 1 | xargs)"
