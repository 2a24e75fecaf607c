#!/usr/bin/env bash
# Ports are mirrored to a tap, where tcpdump listens: a routed one and a bridged one, both ways, in both families. It sees
# exactly the frames that the host at the port sends and gets. The tap and the mirrors come and go under traffic, and nothing is lost.
. "$(dirname "$0")/lib.sh"
need ping tcpdump iperf3
hosts
start_router cpu { workers 1 }

address() {
  in_ns "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0
  ip -n "$1" addr flush dev eth0 scope global
  ip -n "$1" addr add "10.0.$2.$3/24" dev eth0
  ip -n "$1" addr add "2001:db8:$2::$3/64" dev eth0 nodad
  ip -n "$1" route replace default via "10.0.$2.1"
  ip -n "$1" -6 route replace default via "2001:db8:$2::1"
}

add_tap() {
  expect "tap" ctl create tap id 7 host-if-name mirror host-ns "$R"
  expect "state" ctl set interface state tap7 up
  in_r sysctl -qw net.ipv6.conf.mirror.disable_ipv6=1
  ip -n "$R" link set mirror up
}

# capture NAMESPACE DEVICE NAME: what comes by there.
capture() {
  ip netns exec "$1" tcpdump -i "$2" -Unn --immediate-mode -B 16384 -w "$work/$3.pcap" 'icmp or icmp6' 2>"$work/$3.log" &
  helpers+=($!)
  await 10 says "listening on" cat "$work/$3.log" || fail "tcpdump: $(cat "$work/$3.log")"
}
# The echo requests and replies of a capture, in hex, a line each, sorted.
frames() {
  tcpdump -r "$work/$1.pcap" -nnxxt 'icmp[icmptype] == 8 or icmp[icmptype] == 0 or ip6[40] == 128 or ip6[40] == 129' 2>/dev/null |
    awk '/^\t0x/ { for (i = 2; i <= NF; i++) line = line $i; next }
         { if (line != "") print line; line = "" } END { if (line != "") print line }' | sort
}
heard() { [ "$(frames "$1" | wc -l)" -ge "$2" ]; }

# same WHAT TO...: pings from host a; the mirror hears what host a sends and gets, no more and no less.
same() {
  local what=$1 to
  shift
  capture "$A" eth0 "$what-host"
  capture "$R" mirror "$what-tap"
  for to in "$@"; do
    for size in 8 1000 1400; do
      in_a "$patient_ping" -q -i 0.01 -c 20 -s "$size" -W 10 "$to" >"$work/ping.log" 2>&1
      grep -q ' 0% packet loss' "$work/ping.log" || fail "$what: $size bytes to $to: $(cat "$work/ping.log"; kernel_counters; frames "$what-host" | wc -l)"
    done
  done
  local count=$(($# * 3 * 20 * 2))
  await 10 heard "$what-host" "$count" || fail "$what: the host heard $(frames "$what-host" | wc -l) of $count frames"
  await 10 heard "$what-tap" "$count" || fail "$what: the mirror heard $(frames "$what-tap" | wc -l) of $count frames"
  sleep 0.3
  kill "${helpers[@]}" 2>/dev/null
  wait "${helpers[@]}" 2>/dev/null
  helpers=()
  cmp <(frames "$what-host") <(frames "$what-tap") || fail "$what: the mirror differs"
  echo "  $what: $count frames, all the same"
}

# under WHAT TO COMMANDS: what is done while host a pings changes nothing for it.
under() {
  local what=$1 to=$2
  in_a ping -i 0.005 -w 8 "$to" >"$work/ping.log" &
  local ping=$!
  sleep 0.5
  for _ in 1 2 3 4 5; do
    "${@:3}"
  done
  wait "$ping"
  pings_answered "$work/ping.log" || fail "$what: $(tail -n 3 "$work/ping.log")"
}

for link in va vb; do
  expect "interface" ctl create host-interface name "$link"
  expect "state" ctl set interface state "host-$link" up
done
add_tap

# Routed.
address "$A" 3 2
address "$B" 4 2
for on in "host-va 3" "host-vb 4"; do
  read -r interface net <<<"$on"
  expect "address" ctl set interface ip address "$interface" "10.0.$net.1/24"
  expect "address" ctl set interface ip address "$interface" "2001:db8:$net::1/64"
done
for to in 10.0.4.2 2001:db8:4::2; do
  await 10 in_a ping -c 1 -W 1 "$to" || fail "no answer from $to: $(ctl show errors)"
done
expect "span" ctl set interface span host-va destination tap7
same routed 10.0.4.2 2001:db8:4::2

# Large packets of TCP, which are cut on their way out of each interface.
in_b iperf3 -s -D >/dev/null || fail "iperf3 does not start"
await 5 listens "$B" 5201 || fail "iperf3 does not listen"
rate=$(in_a iperf3 -c 10.0.4.2 -t 1 -J 2>/dev/null | awk '/"bits_per_second"/ { gsub(",", ""); r = $2 } END { printf "%d", r / 1e6 }')
[ "${rate:-0}" -gt 10 ] || fail "TCP makes ${rate:-0} Mbit/s while it is mirrored"
[ "$(counter tap7 'tx packets')" -gt 1000 ] || fail "the mirror saw no TCP: $(ctl show interface tap7)"
echo "  TCP, mirrored: $rate Mbit/s"

come_and_go() {
  expect "delete" ctl delete tap tap7
  [ -z "$(ctl show interface span)" ] || fail "the mirror outlives its tap"
  add_tap
  expect "span" ctl set interface span host-va "$@" destination tap7
  expect "span" ctl set interface span host-vb "$@" destination tap7 tx
  expect "span" ctl set interface span host-vb "$@" disable
}
under "routed, under traffic" 10.0.4.2 come_and_go
expect "span" ctl set interface span host-va disable

# Bridged.
for interface in host-va host-vb; do
  expect "address" ctl set interface ip address del "$interface" all
done
address "$B" 3 3
expect "domain" ctl create bridge-domain 10
for interface in host-va host-vb; do
  expect "member" ctl set interface l2 bridge "$interface" 10
done
for to in 10.0.3.3 2001:db8:3::3; do
  await 10 in_a ping -c 1 -W 1 "$to" || fail "no answer from $to in the bridge: $(ctl show errors)"
done
expect "span" ctl set interface span host-va l2 destination tap7 both
same bridged 10.0.3.3 2001:db8:3::3
expect "span" ctl set interface span host-va l2 disable
expect "span" ctl set interface span host-va destination tap7 both
same bridged-port 10.0.3.3 2001:db8:3::3
expect "span" ctl set interface span host-va disable
expect "span" ctl set interface span host-va l2 destination tap7
under "bridged, under traffic" 10.0.3.3 come_and_go l2

# The mirrored port itself goes under traffic.
in_a ping -i 0.005 -w 3 10.0.3.3 >/dev/null &
sleep 0.3
expect "delete" ctl delete host-interface name va
wait $!
[ -z "$(ctl show interface span)" ] || fail "the mirror outlives its port"
pass
