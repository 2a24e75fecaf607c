#!/usr/bin/env bash
# FRR beside the router, whose bfdd has the router run its BFD sessions: one session to FRR in host a, both families, one to BIRD in
# host b. They come up, one of them with echo packets, bfdd shows the router's counters, a cut link is seen in 300 ms and bfdd hears of it, and sessions last while all
# of FRR is killed and comes back. Neighbours never hear a packet of Linux's.
# ALONE=a session goes down if the router or FRR gets no processor for 300 ms
. "$(dirname "$0")/lib.sh"
need ping bird birdc vtysh
need_frr bfdd
begin
with_ip6 "$A" "$B"
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
beside
expect "lcp-sync" ctl lcp lcp-sync on
for port in va:e0:1 vb:e1:2; do
  IFS=: read -r cable image net <<<"$port"
  expect "lcp create" ctl lcp create "host-$cable" host-if "$image" netns "$L"
  expect "address" ctl set interface ip address "host-$cable" "2001:db8:$net::1/64"
done
expect "connect" ctl bfd dataplane connect 127.0.0.1:50700 netns "$L"
says 'bfdd is not connected' ctl show bfd dataplane || fail "show bfd dataplane: $(ctl show bfd dataplane)"

# peers FOLDER PEER... : bfdd's file for sessions of 100 ms, of which three may be lost.
peers() {
  local folder=$work/$1 peer
  shift
  mkdir "$folder"
  {
    echo bfd
    for peer in "$@"; do
      printf ' peer %s\n  receive-interval 100\n  transmit-interval 100\n  detect-multiplier 3\n  no shutdown\n !\n' "$peer"
    done
  } >"$folder/bfdd.conf"
}
peers frr-l "10.0.1.2 local-address 10.0.1.1 interface e0" "2001:db8:1::2 local-address 2001:db8:1::1 interface e0" \
  "10.0.2.2 local-address 10.0.2.1 interface e1"
peers frr-a "10.0.1.1 local-address 10.0.1.2 interface eth0" "2001:db8:1::1 local-address 2001:db8:1::2 interface eth0"
# Host a sends the router's echo packets of the first session back, as bfdd wishes.
in_a sysctl -qw net.ipv4.ip_forward=1
sed -i '0,/detect-multiplier 3/s//&\n  echo-mode\n  echo transmit-interval 100/' "$work/frr-l/bfdd.conf"
sed -i '0,/detect-multiplier 3/s//&\n  echo receive-interval 100/' "$work/frr-a/bfdd.conf"
frr_options[frr-l/bfdd]="--dplaneaddr ipv4:127.0.0.1:50700"
cat >"$work/b.conf" <<CONF
router id 10.0.2.2;
protocol device { scan time 1; }
protocol bfd { interface "eth0" { min rx interval 100 ms; min tx interval 100 ms; multiplier 3; }; neighbor 10.0.2.1 dev "eth0" local 10.0.2.2; }
CONF
start_frr "$A" frr-a bfdd
start_bird "$B" b
start_frr "$L" frr-l bfdd

seen() {
  ctl show bfd dataplane
  ctl show bfd sessions
  vty frr-l 'show bfd peers'
  tail -n 5 "$work"/frr-l/bfdd.*
}
# up N: whether the router and bfdd both have so many sessions up.
up() {
  says "sessions: 3, up $1, waiting 0" ctl show bfd dataplane &&
    [ "$(vty frr-l 'show bfd peers' | grep -c 'Status: up')" -eq "$1" ]
}
await 20 up 3 || fail "sessions do not come up: $(seen)"
[ "$(vty frr-a 'show bfd peers' | grep -c 'Status: up')" -eq 2 ] || fail "host a: $(vty frr-a 'show bfd peers')"
says 'Up' ask_bird b show bfd sessions || fail "host b: $(ask_bird b show bfd sessions)"
# What bfdd shows was counted by the router.
counted() { vty frr-l 'show bfd peers counters' | awk '/Control packet input/ && $4 > 10 { n++ } END { exit n != 3 }'; }
await 20 counted || fail "counters: $(vty frr-l 'show bfd peers counters')"

echoed() { vty frr-l 'show bfd peers counters' | awk '/Echo packet input/ && $4 > 10 { n++ } END { exit n != 1 }'; }
await 20 echoed || fail "echo packets of one session: $(vty frr-l 'show bfd peers counters'); $(seen)"

# All of FRR is killed and comes back: neighbours notice nothing.
changes() { vty frr-a 'show bfd peers counters' | awk '/Session down events/ { n += $NF } END { print n + 0 }'; }
before=$(changes)
end_frr frr-l -9
await 10 says 'bfdd is not connected' ctl show bfd dataplane || fail "bfdd is dead: $(seen)"
sleep 2
start_frr "$L" frr-l bfdd
await 30 up 3 || fail "sessions after FRR's restart: $(seen)"
[ "$(changes)" -eq "$before" ] || fail "sessions of host a went down: $(vty frr-a 'show bfd peers counters')"

# Host a is cut off without a word.
from=$(date +%s%N)
ip -n "$A" link set eth0 down
await 5 up 1 || fail "the cut link is not seen: $(seen)"
cut=$((($(date +%s%N) - from) / 1000000))
ip -n "$A" link set eth0 up
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad 2>/dev/null
await 20 up 3 || fail "sessions after the link's return: $(seen)"

expect "off" ctl bfd dataplane off
says 'sessions: 0' ctl show bfd dataplane || fail "after off: $(seen)"
pass "3 sessions of bfdd, none went down while FRR was away, a cut link is known to FRR after $cut ms"
