#!/usr/bin/env bash
# A configuration that was saved is there again after the router was killed, without anybody typing anything; a file that is
# cut off does not stop the start.
. "$(dirname "$0")/lib.sh"
need ping
begin cpu { workers 1 }
# Ports that carry nothing.
ip -n "$R" link add xa numtxqueues 2 numrxqueues 2 type veth peer name xc
ip -n "$R" link add xb type veth peer name xd
for port in xa xb xc xd; do ip -n "$R" link set "$port" up; done
for end in "$A va 1" "$B vb 2"; do
  read -r ns port n <<<"$end"
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
  ip -n "$ns" addr add "2001:db8:$n::2/64" dev eth0 nodad
  ip -n "$ns" route replace default via "2001:db8:$n::1"
  expect "interface address" ctl set interface ip address "host-$port" "2001:db8:$n::1/64"
done
# Host b has more addresses, behind one that it answers no questions for: the router is told where that is.
mac_b=$(ip netns exec "$B" cat /sys/class/net/eth0/address)
ip -n "$R" link set lo up
ip -n "$B" addr add 10.9.0.1/32 dev lo
ip -n "$B" addr add 2001:db8:9::1/128 dev lo
while read -r -a line; do
  expect "${line[*]}" ctl "${line[@]}"
done <<COMMANDS
ip table add 7 customers
ip6 table add 7
create loopback interface instance 3
create tap id 5 host-if-name lstack host-ip4-addr 10.5.0.2/24
set interface name loop3 inside
set interface tag host-va uplink
set interface mtu 1400 host-vb
set interface ip table inside 7
set interface ip address inside 10.77.0.1/24
set interface ip address tap5 10.5.0.1/24
set ip neighbor host-vb 10.0.2.9 $mac_b static
set ip neighbor host-vb 2001:db8:2::9 $mac_b static
set arp proxy start 10.0.1.100 end 10.0.1.120
set interface proxy-arp host-va enable
set interface tcp-mss-clamp host-va ip4 enable ip4-mss 1300 ip6 enable ip6-mss 1280
set interface feature gso host-va enable
set urpf ip4 rx loose host-va
ip route add 10.9.0.0/16 via 10.0.2.9 host-vb
ip route add 2001:db8:9::/48 via 2001:db8:2::9 host-vb
ip route add 0.0.0.0/0 table 7 via ip4-lookup-in-table 0
ip mroute add 232.1.1.1 via host-va Accept via host-vb Forward
abf policy add id 1 ip4 dst 10.8.0.0/16 via 10.0.2.9 host-vb
abf attach ip4 policy 1 host-va
set interface state inside up
set interface state tap5 up
lcp create host-va host-if image
create host-interface name xa
set host-interface l4-cksum-offload xa off
set interface rx-queues host-xa 2
set interface rx-placement host-xa queue 0 main
set interface rx-mode host-xa interrupt
set interface tx-queue host-xa queue 0 threads 1
create host-interface name xb
delete host-interface name xb
create interface af_xdp host-if xb
set interface af_xdp xb/0 pinhole arp,dhcp
create interface af_xdp host-if xd
delete interface af_xdp xd/0
create tap id 6 host-if-name lsix
set tap offload tap6 csum-offload-disable
create tap id 8 host-if-name leight
delete tap tap8
create memif socket id 1 filename $work/memif.sock
create interface memif id 0 socket-id 1 master
create interface memif id 1 socket-id 1 master
delete interface memif memif1/1
create vhost-user socket $work/vhost.sock server
create vhost-user socket $work/vhost2.sock server
delete vhost-user VirtualEthernet0/0/1
lcp create tap6 host-if six
lcp delete tap6
fpm listen 127.0.0.1:2621
bfd dataplane listen 127.0.0.1:2622
bfd dataplane off
bfd dataplane connect 127.0.0.1:50700
COMMANDS

works() {
  in_a ping -c 1 -W 1 10.0.2.2 >/dev/null && in_a ping -6 -c 1 -W 1 2001:db8:2::2 >/dev/null &&
    in_a ping -c 1 -W 1 10.9.0.1 >/dev/null && in_a ping -6 -c 1 -W 1 2001:db8:9::1 >/dev/null
}
await 10 works || fail "the router does not forward before it is killed"
out=$(ctl show configuration diff)
grep -q '^+set interface proxy-arp host-va enable$' <<<"$out" || fail "no difference: $out"
out=$(ctl write)
[ "$out" = "saved as revision 1" ] || fail "write: $out"
out=$(ctl show configuration diff)
[ -z "$out" ] || fail "a difference after write: $out"
ctl show running-config >"$work/before"
# What devices were told is there, and what was deleted is not.
while read -r line; do
  grep -qE -- "$line" "$work/before" || fail "'$line' is not in: $(cat "$work/before")"
done <<'LINES'
^create host-interface name xa .*cksum-gso-disable
^create host-interface name xa .*num-rx-queues 2
^set interface rx-placement host-xa queue 0 main
^set interface rx-mode host-xa queue 0 interrupt
^set interface tx-queue host-xa queue 0 threads 1
^create interface af_xdp host-if xb .*pinhole arp,dhcp
^create tap id 6 .*host-if-name lsix
^set tap offload tap6 csum-offload-disable
^create memif socket id 1 filename
^create interface memif id 0 socket-id 1 .*master
^create vhost-user socket .*vhost.sock server
^fpm listen 127.0.0.1:2621$
^bfd dataplane connect 127.0.0.1:50700$
LINES
grep -E '^create host-interface name xb|host-if xd|tap8|memif id 1 |vhost2|lcp create tap6|bfd dataplane listen' "$work/before" && fail "what was deleted is saved"
[ "$(stat -c %a "$work/lib/startup.cli")" = 640 ] || fail "mode $(stat -c %a "$work/lib/startup.cli")"

# Linux's side of an interface that is up was made up, and is again.
image_is_up() { ip -n "$R" -o link show image | grep -q '[<,]UP[,>]'; }
image_is_up || fail "the image is down before the router is killed"

# The router is killed, and restarted with the same directory; its log starts empty, too.
again() {
  local pid=$router
  [ -n "$pid" ] || fail "no router to kill"
  router=
  kill -9 "$pid"
  wait "$pid" 2>/dev/null
  : >"$work/shoal.log"
  start_router cpu { workers 1 }
  await 20 logged 'startup.cli: .* commands' || fail "nothing was restored"
}
logged() { grep -q "$1" "$work/shoal.log"; }

again
await 10 works || fail "the router does not forward after it was killed"
image_is_up || fail "the image is down: $(ip -n "$R" link show image)"
ctl show running-config >"$work/after"
difference=$(diff -u "$work/before" "$work/after") || fail "another configuration: $difference"
logged 'failed' && fail "commands failed"
expect "fib check" ctl show fib check

# Cut off in the middle: what is there runs, and everybody is told.
size=$(stat -c %s "$work/lib/startup.cli")
head -c "$((size * 3 / 4))" "$work/lib/startup.cli" >"$work/half"
cat "$work/half" >"$work/lib/startup.cli"
again
logged 'startup.cli is cut off' || fail "the cut-off file is not reported"
out=$(ctl show interface)
grep -q '^inside' <<<"$out" || fail "nothing of the file was run: $out"
out=$(ctl show configuration diff 1)
grep -q '^-set interface state' <<<"$out" || fail "the revision does not have what is missing: $out"

# With the revision the router is what it was.
cp "$work"/lib/revisions/000001-*.cli "$work/lib/startup.cli"
again
await 10 works || fail "the router does not forward with the revision"
ctl show running-config >"$work/after"
difference=$(diff -u "$work/before" "$work/after") || fail "another configuration: $difference"
alive
# Its rings are full of the router's buffers.
expect "delete interface" ctl delete interface af_xdp xb/0
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$(grep -vc '^#' "$work/before") commands"
