#!/usr/bin/env bash
# Taps by vhost-net, in a virtual machine whose kernel has it: pings of both families, files compared byte for byte, large
# packets, queues that come and go, taps deleted by the router and by the host under traffic, and the way without it.
#
#   scripts/in-namespace.sh tests/netns/33-vhost-net.sh
#
#   guest: namespace a (eth0) --- tap0   router   tap1 --- namespace b (eth0)
# NEEDS=qemu
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/guest.sh"
need iperf3 strip ip
# In software a guest is slow.
: "${MEGABYTES:=8}"
guest_kernel
mkdir -p "$work/parts"
for part in "$SHOAL:shoal" "$SHOALCTL:shoalctl"; do
  strip -o "$work/parts/${part#*:}" "${part%%:*}" || fail "cannot strip ${part%%:*}"
  chmod +x "$work/parts/${part#*:}"
done
guest_memory=512 guest_cpus=2
guest_image tun vhost_net -- "$work/parts/shoal:/bin/shoal" "$work/parts/shoalctl:/bin/shoalctl" \
  "$(readlink -f "$(command -v ip)"):/usr/sbin/ip" iperf3 <<GUEST
ip() { /usr/sbin/ip "\$@"; }
c() { shoalctl -s /tmp/run/cli.sock "\$@"; }
# until_true SECONDS COMMAND...: repeats it until it succeeds.
until_true() { n=\$((\$1 * 5)); shift; until "\$@" >/dev/null 2>&1; do n=\$((n - 1)); [ \$n -gt 0 ] || return 1; sleep 0.2; done; }
# is WHAT COMMAND...: says it, and what the command said if it failed.
is() { what=\$1; shift; if "\$@" >/tmp/out 2>&1; then say "ok \$what"; else say "FAILED \$what"; sed 's/^/GUEST: /' /tmp/out; fi; }
shown() { c show tap "\$1" | grep -q "\$2"; }
quiet_rings() { [ "\$(c show tap | grep -c 'malformed 0')" = "\$1" ]; }
# threads N: whether the kernel has so many threads of vhost-net.
threads() { [ "\$(cat /proc/[0-9]*/task/*/comm 2>/dev/null | grep -c '^vhost-')" = "\$1" ]; }
field() { c show tap "\$1" | sed -n "s/.*\$2 \\([0-9]*\\).*/\\1/p"; }
packets() { c show interface "\$1" | awk '/rx packets/ { print \$NF }'; }
bytes() { c show interface "\$1" | awk '/rx bytes/ { print \$NF }'; }
mkdir -p /tmp/run /run/netns /var
ln -s /run /var/run
for ns in a b; do ip netns add \$ns && ip -n \$ns link set lo up; done
[ -c /dev/vhost-net ] && [ -c /dev/net/tun ] || say "FAILED no /dev/vhost-net"
shoal unix { nodaemon nosyslog runtime-dir /tmp/run } configuration { directory /tmp/lib } >/tmp/shoal.log 2>&1 &
until_true 60 [ -S /tmp/run/cli.sock ] || say "FAILED the router does not answer: \$(tail -n 25 /tmp/shoal.log | tr '\n' ' ')"
# make NAMESPACE NUMBER WORDS...: a tap with addresses of both families.
make() {
  run c create tap host-ns \$1 host-if-name eth0 host-ip4-addr 10.0.\$2.2/24 host-ip4-gw 10.0.\$2.1 \
    host-ip6-addr 2001:db8:\$2::2/64 host-ip6-gw 2001:db8:\$2::1 id \$2 \$3 \$4 \$5
  run c set interface ip address tap\$2 10.0.\$2.1/24
  run c set interface ip address tap\$2 2001:db8:\$2::1/64
  run c set interface state tap\$2 up
}
make a 0 vhost-net
make b 1
is "vhost-net where it was asked for" shown tap0 'vhost-net: yes, rx-ring-size 256, tx-ring-size 256'
is "vhost-net of its own accord" shown tap1 'vhost-net: yes'
is "the wish is kept" sh -c "shoalctl -s /tmp/run/cli.sock show running-config | grep -q 'create tap id 0 .* vhost-net'"
c show tap | sed 's/^/GUEST: /'
in_a() { ip netns exec a "\$@"; }
in_b() { ip netns exec b "\$@"; }
is "ping" until_true 10 in_a ping -c 1 -W 2 10.0.1.2
is "ping of IPv6" until_true 20 in_a ping -6 -c 1 -W 2 2001:db8:1::2
is "20 pings, none lost" sh -c "/usr/sbin/ip netns exec a ping -q -c 20 -i 0.1 -s 1400 10.0.1.2 | grep -q ' 0% packet loss'"
is "20 pings of IPv6" sh -c "/usr/sbin/ip netns exec a ping -6 -q -c 20 -i 0.1 -s 1400 2001:db8:1::2 | grep -q ' 0% packet loss'"

# Files, in both directions and families.
head -c $((MEGABYTES << 20)) /dev/urandom >/tmp/file
want=\$(sha256sum </tmp/file)
# What the receiver sends: nothing, without an end, at which it would hang up.
mkfifo /tmp/nothing
exec 9<>/tmp/nothing
# copy FROM TO ADDRESS
copy() {
  /usr/sbin/ip netns exec \$2 nc -l -p 5000 <&9 >/tmp/copy &
  reader=\$!
  until_true 5 sh -c "/usr/sbin/ip netns exec \$2 netstat -ltn | grep -q :5000"
  timeout 60 /usr/sbin/ip netns exec \$1 nc \$3 5000 </tmp/file >/dev/null || return 1
  wait \$reader
  [ "\$(sha256sum </tmp/copy)" = "\$want" ]
}
is "a file to b" copy a b 10.0.1.2
is "a file to a" copy b a 10.0.0.2
is "a file by IPv6" copy a b 2001:db8:1::2
[ \$(field tap0 kicks) -lt \$(packets tap0) ] && say "ok woken less often than there are frames" || say "FAILED \$(field tap0 kicks) kicks"
# What the host is not to be asked for the router does.
run c set tap offload tap0 csum-offload-disable
run c set tap offload tap1 gso-disable
is "a file without offloads" copy b a 10.0.0.2
run c set tap offload tap0 gso-enable
run c set tap offload tap1 gso-enable gro-coalesce
is "a file with merging" copy a b 10.0.1.2

serve() {
  killall iperf3 2>/dev/null
  in_b iperf3 -s -D >/dev/null 2>&1
  until_true 5 sh -c "/usr/sbin/ip netns exec b netstat -ltn | grep -q :5201"
}
serve
rate() { in_a iperf3 -c 10.0.\$1.2 -t 2 -f m 2>/dev/null | awk '/receiver/ { print int(\$7) }'; }
run c set tap offload tap1 gso-enable
packets=\$(packets tap0) bytes=\$(bytes tap0)
rings=\$(rate 1)
# No frame of the MTU has as many.
average=\$(((\$(bytes tap0) - bytes) / (\$(packets tap0) - packets)))
[ \$average -gt 1514 ] && say "ok large packets, \$average bytes" || say "FAILED frames of \$average bytes"
[ "\${rings:-0}" -gt 0 ] && say "rings \$rings" || say "FAILED iperf3 by rings"

# Queues come and go under traffic; down, up.
/usr/sbin/ip netns exec a iperf3 -c 10.0.1.2 -t 30 -P 4 >/tmp/iperf 2>&1 &
load=\$!
for queues in 3 1 2; do
  run c set interface rx-queues tap0 \$queues
  run c set interface rx-queues tap1 \$queues
  is "ping with \$queues queues" until_true 10 in_a ping -c 1 -W 2 10.0.1.2
done
is "four threads of the kernel" until_true 5 threads 4
run c set interface state tap1 down
is "no ping while it is down" sh -c "! /usr/sbin/ip netns exec a ping -c 1 -W 1 10.0.1.2"
run c set interface state tap1 up
is "ping when it is up again" until_true 10 in_a ping -c 1 -W 2 10.0.1.2
is "nothing malformed" quiet_rings 2

# The router deletes one under traffic, then the host the other.
run c delete tap tap1
is "its host side is gone" until_true 5 sh -c "! /usr/sbin/ip -n b link show eth0"
is "the router answers" c show version
/usr/sbin/ip netns exec a ping -i 0.1 -c 100 10.0.0.1 >/dev/null 2>&1 &
pings=\$!
ip -n a link del eth0
is "the router hears that the host has deleted it" until_true 10 shown tap0 'deleted by the host'
kill \$load \$pings 2>/dev/null
run c delete tap tap0
is "no thread of the kernel is left" until_true 10 threads 0

# By system calls: asked for, for a tun, and where there is no vhost-net.
make a 0 no-vhost-net
make b 1 no-vhost-net
is "no vhost-net, as it was asked for" shown tap0 'vhost-net: no, not asked for'
until_true 10 in_a ping -c 1 -W 2 10.0.1.2
serve
calls=\$(rate 1)
[ "\${calls:-0}" -gt 0 ] && say "calls \$calls" || say "FAILED iperf3 by calls"
run c delete tap tap0
run c delete tap tap1
run c create tap tun host-ns a host-if-name tun0
is "no vhost-net for a tun" shown tun0 'vhost-net: no, it takes Ethernet frames'
c create tap tun id 5 vhost-net >/tmp/out 2>&1 && say "FAILED a tun with vhost-net" || say "ok refused: \$(cat /tmp/out)"
run c delete tap tun0
# Small rings, where a large packet needs all slots; a TAP that stays and is attached to again.
make a 0 persist rx-ring-size 32
make b 1 tx-ring-size 8
is "ping by small rings" until_true 10 in_a ping -c 1 -W 2 10.0.1.2
is "a file by small rings" copy a b 10.0.1.2
run c delete tap tap0
run c create tap id 0 host-ns a host-if-name eth0 attach vhost-net
run c set interface ip address tap0 10.0.0.1/24
run c set interface state tap0 up
ip -n a neigh flush dev eth0 >/dev/null 2>&1
is "ping when it was attached to again" until_true 10 in_a ping -c 1 -W 2 10.0.1.2
run c delete tap tap0
run c delete tap tap1
rm /dev/vhost-net
run c create tap id 0
is "a TAP without vhost-net" shown tap0 'vhost-net: no, open(/dev/vhost-net): No such file'
c create tap vhost-net >/tmp/out 2>&1 && say "FAILED vhost-net that is not there" || say "ok refused: \$(cat /tmp/out)"
is "nothing was half made" sh -c "! /usr/sbin/ip link show tap1"
sleep 1
c show errors | sed 's/^/GUEST: /'
used=\$(c show buffers | awk 'NF { last = \$NF } END { print last + 0 }')
[ "\$used" = 0 ] && say "ok no buffer is in use" || say "FAILED \$used buffers are in use"
dmesg | grep -iE 'vhost|BUG|WARNING|Oops' | sed 's/^/GUEST: /'
sed 's/^/GUEST: log /' /tmp/shoal.log
GUEST
begin_at=$SECONDS
guest vhost
guest_finished vhost 240
[ -z "${V:-}" ] || grep -a '^GUEST' "$work/vhost.log" | tr -d '\r'
told() { sed -n "s/^GUEST $1 //p" "$work/vhost.log" | tr -d '\r' | head -n 1; }
pass "by $guest_how in $((SECONDS - begin_at)) s, Mbit/s: by rings $(told rings), by system calls $(told calls)"
