#!/usr/bin/env bash
# Multicast routing by a daemon: FRR's pimd beside the router hears of a receiver in host b by IGMP and of a source in host a by packets
# that find no route; its routes become the router's, which forwards. The receiver leaves and joins, and pimd's hellos reach a neighbour.
. "$(dirname "$0")/lib.sh"
need python3 ping vtysh
need_frr pimd
begin linux-cp { lcp-sync }
beside
ip netns exec "$L" test -e /proc/net/ip_mr_vif || skip "the kernel routes no multicast"
expect "lcp create" ctl lcp create host-va host-if e0 netns "$L"
expect "lcp create" ctl lcp create host-vb host-if e1 netns "$L"

# start_pimd NAMESPACE FOLDER INTERFACE...: zebra and pimd, with PIM and IGMP on these interfaces.
start_pimd() {
  local folder=$work/$2
  mkdir "$folder"
  {
    echo 'ip pim rp 10.0.1.1 224.0.0.0/4'
    printf 'interface %s\n ip pim\n ip pim hello 1\n ip igmp\n ip igmp query-interval 2\n ip igmp query-max-response-time 10\n!\n' "${@:3}"
  } >"$folder/pimd.conf"
  start_frr "$1" "$2" pimd
}
start_pimd "$L" frr-l e0 e1
start_pimd "$A" frr-a eth0

neighbour() { says '10\.0\.1\.2 ' vty frr-l 'show ip pim neighbor'; }
await 30 neighbour || fail "no PIM neighbour: $(vty frr-l 'show ip pim neighbor'); $(ctl show errors)"
PATIENCE=60 in_b "$group" receive 239.1.1.1 14 >"$work/seen" &
receiver=$!
member() { says '239\.1\.1\.1' vty frr-l 'show ip igmp groups'; }
await 10 member || fail "the receiver's report is not heard: $(vty frr-l 'show ip igmp groups'); $(ctl show errors)"
sent=$(PATIENCE=30 in_a "$group" send 239.1.1.1 8)
says '10.0.1.2, 239.1.1.1' ctl show ip mfib || fail "no entry: $(ctl show ip mfib); $(vty frr-l 'show ip mroute'); $(ip -n "$L" mroute)"
says 'plugin-low' ctl show ip mfib || fail "not by Linux: $(ctl show ip mfib)"
says 'multicast routes: [1-9][0-9]* ([1-9]' ctl show lcp netlink || fail "show lcp netlink: $(ctl show lcp netlink)"
wait "$receiver" || fail "the receiver: $(cat "$work/seen")"
came "$work/seen" "$sent"
given=$(ctl show errors | awk '/linux-cp-ip4-mcast .*given to the host/ { print $1 }')
[ "${given:-0}" -lt $((sent / 4)) ] || fail "$given of $sent packets went by way of the kernel"

# Without a receiver nothing leaves any more, and the router still takes no packet for an unknown one.
left() { ! says '239\.1\.1\.1' vty frr-l 'show ip igmp groups'; }
await 30 left || fail "the receiver has left: $(vty frr-l 'show ip igmp groups')"
before=$(counter host-vb 'tx packets')
in_a "$group" send 239.1.1.1 1 >/dev/null
[ $(($(counter host-vb 'tx packets') - before)) -lt 50 ] || fail "packets leave without a receiver: $(ctl show ip mfib)"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$seen of $sent packets, $given of them by way of the kernel"
