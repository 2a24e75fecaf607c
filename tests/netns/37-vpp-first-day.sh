#!/usr/bin/env bash
# A VPP operator's first day: the start-up file of VPP's package, a script of VPP's commands, VPP's clients with their
# defaults, a restart, and two routers side by side. In namespaces of network and files of its own, so that it shares
# /run/vpp, /var/lib/shoal and /var/log with no other program.
if [ -z "${FIRST_DAY:-}" ]; then
  unshare -mn true 2>/dev/null || { echo "SKIP 37-vpp-first-day: no namespaces here"; exit 0; }
  FIRST_DAY=1 exec unshare -mn "$0"
fi
. "$(dirname "$0")/lib.sh"
for folder in /run /var/lib /var/log /usr/share; do
  mount -t tmpfs tmpfs "$folder" || skip "no private $folder"
done
mkdir -p /usr/share/vpp "$work/bin"
ln -s "$root/share/api" /usr/share/vpp/api
ln -s "$SHOAL" "$work/bin/vpp"
ln -s "$SHOALCTL" "$work/bin/vppctl"
vppctl() { timeout 20 "$work/bin/vppctl" "$@"; }
second=

# In the shape of VPP's package.
cat >"$work/startup.conf" <<CONF
unix {
  nodaemon
  log /var/log/vpp/vpp.log
  full-coredump
  cli-listen /run/vpp/cli.sock
  gid vpp
  startup-config $work/setup.vpp
}
api-trace {
  on
}
api-segment {
  gid vpp
}
socksvr {
  default
}
statseg {
  default
}
memory {
  # main-heap-size 1G
}
cpu {
  main-core 0
  # corelist-workers 2-3,18-19
}
buffers {
  # buffers-per-numa 128000
}
dpdk {
  dev default {
    num-rx-queues 2
  }
  dev 0000:02:00.0
}
plugins {
  path /usr/lib/x86_64-linux-gnu/vpp_plugins
  plugin default { enable }
  plugin linux_cp_plugin.so { enable }
}
logging {
  default-log-level debug
}
CONF
cat >"$work/setup.vpp" <<COMMANDS
comment { what VPP's operators write }
create loopback interface
loopback create-interface
mpls table add 10
set interface state loop0 up
set int state loop1 up
set interface ip address loop0 10.0.0.1/24
set int ip address loop0 2001:db8::1/64
set interface mtu 1500 loop0
set interface mtu packet 1400 loop0
set interface tag loop0 north
set interface name loop1 inside
ip table add 7
ip6 table add 7
set interface ip table inside 7
set interface ip address inside 10.7.0.1/24
ip route add 192.0.2.0/24 via 10.0.0.2
ip route add 192.0.2.0/24 via 10.0.0.3
ip route add 198.51.100.0/24 via drop
ip route add 2001:db8:9::/48 via 2001:db8::2
ip route add 0.0.0.0/0 table 7 via ip4-lookup-in-table 0
set ip neighbor loop0 10.0.0.2 02:fe:00:00:00:02
set ip neighbor loop0 10.0.0.3 02:fe:00:00:00:03 static
create packet-generator interface pg0
set interface state pg0 up
set interface ip address pg0 172.16.0.1/24
create memif socket id 1 filename /run/vpp/memif1.sock
create interface memif id 0 socket-id 1 master
set interface state memif1/0 up
show version
show interface
show interface address
show hardware-interfaces
show ip fib
show ip6 fib
show ip neighbors
show threads
show runtime
show errors
show buffers
show physmem
show pci
show udp ports
show cli-sessions
show plugins
show trace
pcap dispatch trace on max 100 file first-day.pcap
pcap dispatch trace status
perfmon start bundle page-faults type node
show perfmon active-bundle
show perfmon statistics
perfmon stop
COMMANDS

grep -q '^vpp:' /etc/group && skip "this machine has a group vpp"
start_vpp() {
  "$work/bin/vpp" -c "$work/startup.conf" >>"$work/shoal.log" 2>&1 &
  router=$!
  await 10 vppctl show version || fail "vppctl does not reach the router"
}
logged() { grep -q -- "$1" /var/log/vpp/vpp.log; }

"$work/bin/vpp" --check-config -c "$work/startup.conf" >"$work/checked" 2>&1
[ $? = 1 ] || fail "--check-config: $(cat "$work/checked")"
grep -q 'setup.vpp:4: mpls table: VPP has this' "$work/checked" || fail "the check: $(cat "$work/checked")"
start_vpp
for socket in cli api stats; do [ -S "/run/vpp/$socket.sock" ] || fail "no /run/vpp/$socket.sock"; done
[ "$(cat "/proc/$router/comm")" = vpp_main ] || fail "its name is $(cat "/proc/$router/comm")"
await 10 logged 'setup.vpp: .* failed' || fail "nothing is logged of the bad line: $(cat /var/log/vpp/vpp.log)"
for line in "group 'vpp'" "interfaces of 0000:02:00.0 will be missing" "setup.vpp:4: mpls table: VPP has this; Shoal"; do
  grep -q -- "$line" /var/log/vpp/vpp.log "$work/shoal.log" || fail "not logged: $line"
done
wrong=$(grep -c 'setup.vpp:[0-9]*: ' /var/log/vpp/vpp.log)
[ "$wrong" = 1 ] || fail "$wrong lines failed: $(grep 'setup.vpp:' /var/log/vpp/vpp.log)"
says 'memif1/0' vppctl show interface || fail "the last interface is missing"
says '10.0.0.2' vppctl show ip neighbors || fail "no neighbour"

python=${VENV:-$root/target/papi}/bin/python3
papi=without
if "$python" -c 'import vpp_papi' 2>/dev/null; then
  papi=with
  expect "vpp_papi with its defaults" "$python" -c '
from vpp_papi import VPPApiClient
vpp = VPPApiClient()
vpp.connect("first-day")
assert vpp.api.show_version().program, "no program"
names = [i.interface_name for i in vpp.api.sw_interface_dump()]
assert "loop0" in names and "inside" in names, names
vpp.disconnect()
from vpp_papi.vpp_stats import VPPStats
stats = VPPStats()
stats.connect()
assert "inside" in stats["/if/names"], stats["/if/names"]
'
fi

# A script with a bad line, a question, and what is asked of answers.
printf 'show nothing\nset interface state pg0 down\n' >"$work/script"
out=$(vppctl -f "$work/script" 2>&1) && fail "a bad line, and 0"
grep -q "$work/script:1: show: unknown input" <<<"$out" || fail "shoalctl -f: $out"
says 'pg0 .* down' vppctl show interface || fail "the line behind the bad one did not run"
[ "$(vppctl 'show interface | include loop | count')" -ge 1 ] || fail "nothing is counted"
says '^interface$' vppctl --complete show int || fail "no completion"
vppctl ping 10.0.0.77 repeat 1 interval 0.1 >/dev/null && fail "a ping without an answer, and 0"

# What is saved and what the file makes are there once.
expect write vppctl write
stop_router || fail "the router does not end"
: >/var/log/vpp/vpp.log
start_vpp
await 10 logged 'setup.vpp: .* failed' || fail "the file was not run again"
wrong=$(grep -c 'setup.vpp:[0-9]*: ' /var/log/vpp/vpp.log)
[ "$wrong" = 1 ] || fail "$wrong lines failed after the restart: $(grep 'setup.vpp:' /var/log/vpp/vpp.log)"
says loop2 vppctl show interface && fail "a loopback too many"

# Another router beside it has none of this.
mkdir "$work/two"
"$SHOAL" unix { nodaemon nosyslog runtime-dir "$work/two" } >"$work/two.log" 2>&1 &
second=$!
helpers+=("$second")
await 10 "$SHOALCTL" -s "$work/two/cli.sock" show version || fail "no second router: $(cat "$work/two.log")"
two() { timeout 20 "$SHOALCTL" -s "$work/two/cli.sock" "$@"; }
says loop two show interface && fail "the second router has what the first one saved"
expect "write" two write
[ "$(find /var/lib/shoal -name startup.cli | wc -l)" = 2 ] || fail "saved: $(find /var/lib/shoal)"
pass "$(grep -vc '^comment' "$work/setup.vpp") commands, $papi vpp_papi"
