# What the tests of real hosts share: namespaces, a router, waiting, and cleaning up after all of it.
#
# A test is a file NN-NAME.sh in this folder. It sources this file, calls `begin`, does its work with `expect` and
# `await`, and ends with `pass`. Everything it made goes away however it ends. The names of namespaces and
# interfaces carry the process id, so that tests of two work trees do not meet.
#
#   host a 10.0.1.2/24 --- va | host-va 10.0.1.1/24   router   host-vb 10.0.2.1/24 | vb --- 10.0.2.2/24 host b
#
# The router runs in a namespace of its own, with its ends of the two veth pairs as host-interfaces. Offloads are
# what the kernel switches on by default; nothing here calls ethtool.
set -uo pipefail
# Bash takes no PS4 from root's environment, so run.sh's trace gets it here.
PS4='+ $SECONDS s, ${BASH_SOURCE##*/}:$LINENO: '

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
: "${SHOAL:=$root/target/release/shoal}" "${SHOALCTL:=$root/target/release/shoalctl}"
name=$(basename "$0" .sh)
id=$$
A=shoal-a-$id B=shoal-b-$id R=shoal-r-$id
# For programs of Linux beside the router, which see images of its interfaces; tests that need it make it with `beside`.
L=shoal-l-$id
# All of them; a test that needs one more adds it with `place`.
places=("$A" "$B" "$R" "$L")
work=$(mktemp -d "${TMPDIR:-/tmp}/shoal-$name.XXXXXX")
sock=$work/run/cli.sock
router=
ended=
# Processes of ours outside the namespaces, to be ended too.
helpers=()

# Ends the test: `ok`, `FAIL` with what is known, or `SKIP` with the reason.
pass() { ended=1; echo "ok $name${1:+: $1}"; exit 0; }
skip() { ended=1; echo "SKIP $name: $*"; exit 0; }
fail() {
  ended=1
  echo "FAIL $name: $*"
  if [ -s "$work/shoal.log" ]; then
    echo "--- the router's log"
    tail -n 40 "$work/shoal.log"
  fi
  if [ -n "$router" ] && kill -0 "$router" 2>/dev/null; then
    local command
    for command in 'show interface' 'show errors' 'show ip neighbors'; do
      echo "--- $command"
      timeout 5 "$SHOALCTL" -s "$sock" $command 2>&1 | head -n 60
    done
  fi
  exit 1
}

cleanup() {
  { set +x; } 2>/dev/null
  trap - EXIT INT TERM HUP
  local ns pids
  if [ -z "$ended" ]; then
    echo "FAIL $name: ended before it was done"
    echo "--- what still ran, and what it waited for"
    for ns in "${places[@]}"; do
      pids=$(ip netns pids "$ns" 2>/dev/null | paste -sd,)
      [ -z "$pids" ] || ps -ww -o pid,stat,etimes,wchan:24,args -p "$pids" | cut -c -160
    done
    ps -ww -o pid,stat,etimes,wchan:24,args --ppid $$ | cut -c -160
  fi
  stop_router
  [ ${#helpers[@]} -eq 0 ] || kill "${helpers[@]}" 2>/dev/null
  for ns in "${places[@]}"; do
    [ -e "/run/netns/$ns" ] || continue
    pids=$(ip netns pids "$ns" 2>/dev/null)
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill -9 $pids 2>/dev/null
    ip netns del "$ns"
  done
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

need() {
  local tool
  for tool in "$@"; do command -v "$tool" >/dev/null || skip "$tool is not installed"; done
}

# await SECONDS COMMAND...: repeats the command until it succeeds; fails when the time is over. It is asked whether, not how soon:
# beside other work everything takes longer, so all have LEAST_AWAIT seconds.
: "${LEAST_AWAIT:=15}"
await() {
  local until=$((SECONDS + ($1 > LEAST_AWAIT ? $1 : LEAST_AWAIT)))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || return 1
    sleep 0.1
  done
}

# expect WHAT COMMAND...: fails the test, with the command's output, if it does not succeed.
expect() {
  local what=$1 out
  shift
  out=$("$@" 2>&1) || fail "$what: $* said: $(tail -n 20 <<<"$out")"
}

# says PATTERN COMMAND...: whether the command's output matches. Not `COMMAND | grep -q`: that ends at the first match, and a
# command that has more to say is a failed one then.
says() { grep -q -- "$1" <<<"$("${@:2}" 2>&1)"; }

# pings_answered FILE: whether ping, ended by a signal or by its deadline, says that every echo request was answered. The last one
# may be on its way when ping ends, so one without an answer is allowed.
pings_answered() { awk '/ packets transmitted/ { seen = 1; lost = $1 - $4 } END { exit !(seen && lost <= 1) }' "$1"; }

# Instead of ping where every request is to be answered: ping itself counts answers as lost that are late at its end.
patient_ping=$root/tests/netns/patient_ping.py
# Packets to a multicast group, and a host that wants them.
group=$root/tests/netns/group.py
# came FILE SENT: whether nearly all packets to a group have come, none twice, by what `group.py receive` printed; $seen is how many.
came() {
  local first holes again
  read -r seen first holes again <"$1"
  [ "$seen" -gt $(($2 * 9 / 10)) ] && [ "$again" -eq 0 ] && [ "$holes" -le 20 ] ||
    fail "of $2 packets $seen arrived, the first is $first, $holes missing, $again twice; $(ctl show errors)"
}

# A command in a namespace; one that hangs is ended, so that its test can say which it was.
in_ns() { timeout "${PATIENCE:-30}" ip netns exec "$@"; }
in_a() { in_ns "$A" "$@"; }
in_b() { in_ns "$B" "$@"; }
in_r() { in_ns "$R" "$@"; }
in_l() { in_ns "$L" "$@"; }

# kernel_counters: what the kernel counted on the way from host a by the router's cables to host b, for a failure.
kernel_counters() {
  local at
  for at in "$A eth0" "$R va" "$R vb" "$B eth0"; do
    ip -n "${at% *}" -s link show "${at#* }" 2>&1 | sed "s/^/$at: /"
  done
  for at in "$A" "$B"; do
    ip netns exec "$at" grep -E '^(Ip6(In|Out).*(Discards|Requests|Receives|NoRoutes)|Icmp6.*Echo)' /proc/net/snmp6 | sed "s/^/$at: /"
  done
  sed 's/^/softnet_stat: /' /proc/net/softnet_stat
}

# beside: the namespace for programs beside the router.
beside() {
  ip netns add "$L" || fail "cannot make a namespace"
  ip -n "$L" link set lo up
}

# place NAME: one more namespace, whose name becomes that of the variable NAME.
place() {
  local -n made=$1
  made=shoal-${1,,}-$id
  places+=("$made")
  ip netns add "$made" && ip -n "$made" link set lo up || fail "cannot make a namespace"
}

# running NAMESPACE PROGRAM...: the processes of these programs in a namespace, a process id a line.
running() {
  local ns=$1 pid program
  shift
  ip netns pids "$ns" | while read -r pid; do
    program=$(cat "/proc/$pid/comm" 2>/dev/null) || continue
    [[ " $* " != *" $program "* ]] || echo "$pid"
  done
}
ended_all() { [ -z "$(running "$@")" ]; }

# interrupt NAMESPACE PROGRAM...: ends programs as Ctrl-C does, so that they print what they counted. One that goes on for 15 seconds is
# named and fails the test.
interrupt() {
  local pid
  for pid in $(running "$@"); do kill -INT "$pid" 2>/dev/null; done
  await 15 ended_all "$@" || fail "does not end: $(ps -ww -o pid,stat,etimes,wchan:24,args -p "$(running "$@" | paste -sd,)")"
}

# listens NAMESPACE PORT: whether somebody there takes TCP connections. A connection made to find out would be taken for a
# test by iperf3's server, which then refuses the real one while it clears up.
listens() { ip netns exec "$1" ss -Hltn "sport = :$2" | grep -q .; }

# One command to the router.
ctl() { timeout "${CTL_TIMEOUT:-20}" "$SHOALCTL" -s "$sock" "$@"; }

# fragments_echoed CLIENT ADDRESS SERVER ITS-ADDRESS: whether five UDP datagrams of 5,000 bytes, which are larger than a packet, come back
# whole from the server, which the client knows by another address or the same.
fragments_echoed() {
  ip netns exec "$3" python3 -c 'import socket, sys
s = socket.socket(type=socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7))
for _ in range(5): s.sendto(*s.recvfrom(9000))' "$4" &
  helpers+=($!)
  await 5 says "$4:7 " ip netns exec "$3" ss -lun || return 1
  says "all of them" in_ns "$1" python3 -c 'import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect((sys.argv[1], 7))
for n in range(5):
    s.send(bytes([n]) * 5000)
    assert s.recv(9000) == bytes([n]) * 5000
print("all of them")' "$2"
}

# A counter's value out of `show interface`: counter INTERFACE 'rx packets'
counter() {
  ctl show interface "$1" | awk -v want="$2" 'index($0, want) { print $NF; found = 1; exit } END { if (!found) print 0 }'
}

# start_router [SETTINGS...]: starts the router in its namespace and waits for its CLI.
start_router() {
  [ -x "$SHOAL" ] || fail "$SHOAL is not there, run 'make build'"
  mkdir -p "$work/run"
  # What the machine's own router has saved is not for tests.
  ip netns exec "$R" "$SHOAL" unix { nodaemon nosyslog runtime-dir "$work/run" } \
    configuration { directory "$work/lib" } "$@" \
    >>"$work/shoal.log" 2>&1 &
  router=$!
  await 10 "$SHOALCTL" -s "$sock" show version || fail "the router does not answer within 10 seconds"
}

stop_router() {
  [ -n "$router" ] || return 0
  local pid=$router
  router=
  kill "$pid" 2>/dev/null || { wait "$pid" 2>/dev/null; return 1; }
  await 5 not_running "$pid" || { kill -9 "$pid"; echo "the router had to be killed" >&2; return 1; }
  wait "$pid"
}
not_running() { ! kill -0 "$1" 2>/dev/null || [ "$(awk '{ print $3 }' "/proc/$1/stat" 2>/dev/null)" = Z ]; }

# Whether the router is still the process we started.
alive() { [ -n "$router" ] && kill -0 "$router" 2>/dev/null || fail "the router has died"; }

# hosts: two hosts and the router's namespace, with cables.
hosts() {
  need ip
  ip netns add "$A" 2>"$work/why" || skip "no network namespaces here: $(cat "$work/why")"
  ip netns add "$B" && ip netns add "$R" || fail "cannot make namespaces"
  cable "$A" va 10.0.1.2/24 10.0.1.1
  cable "$B" vb 10.0.2.2/24 10.0.2.1
}

# cable NAMESPACE NAME ADDRESS GATEWAY: eth0 in the host, NAME at the router.
cable() {
  ip -n "$R" link add name "$2" type veth peer name eth0 netns "$1" || fail "cannot make a veth pair"
  # Neither end speaks IPv6 here: router solicitations would count as drops.
  ip netns exec "$R" sysctl -qw "net.ipv6.conf.$2.disable_ipv6=1" 2>/dev/null
  ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 2>/dev/null
  ip -n "$R" link set "$2" up
  ip -n "$1" link set lo up
  ip -n "$1" addr add "$3" dev eth0
  ip -n "$1" link set eth0 up
  ip -n "$1" route add default via "$4"
}

# begin [SETTINGS...]: hosts, router, interfaces with addresses.
begin() {
  hosts
  start_router "$@"
  attach va 10.0.1.1/24
  attach vb 10.0.2.1/24
  await 5 in_a ping -c 1 -W 1 10.0.1.1 || fail "the router does not answer host a's ping"
  await 5 in_b ping -c 1 -W 1 10.0.2.1 || fail "the router does not answer host b's ping"
}

# attach NAME ADDRESS [WORDS...]: the router's end of a cable becomes a host-interface, made with these words.
attach() {
  expect "create host-interface" ctl create host-interface name "$1" "${@:3}"
  expect "interface state" ctl set interface state "host-$1" up
  expect "interface address" ctl set interface ip address "host-$1" "$2"
}

# Buffers in packets; what the last line of `show buffers` ends with.
buffers_used() { ctl show buffers | awk 'NF { last = $NF } END { print last + 0 }'; }
no_buffers_used() { [ "$(buffers_used)" -eq 0 ]; }

# with_dpdk: $dpdk becomes what starts a router with DPDK's plugin, which is built; where that cannot be it is empty and
# $without says so.
with_dpdk() {
  dpdk=() without=
  if [ -z "${DPDK_PLUGIN:-}" ] && ! pkg-config --exists libdpdk 2>/dev/null; then
    without=", without DPDK's, whose headers are not installed (libdpdk-dev)"
    return
  fi
  : "${DPDK_PLUGIN:=$("$root/scripts/dpdk.sh")}" || fail "the plugin does not build"
  dpdk=(plugins { path "$DPDK_PLUGIN" plugin dpdk_plugin.so { enable } } dpdk { no-pci no-hugetlb })
}

# start_far WORDS...: a second router beside the first, with these words of a start-up file; `far` asks it.
start_far() {
  ip netns exec "$R" "$SHOAL" unix { nodaemon nosyslog runtime-dir "$work/far" } \
    configuration { directory "$work/far-lib" } "$@" >"$work/far.log" 2>&1 &
  helpers+=($!)
  await 10 far show version || fail "the second router does not answer: $(cat "$work/far.log")"
}
far() { timeout 20 "$SHOALCTL" -s "$work/far/cli.sock" "$@"; }

# Routing daemons. Their files are in folders below $work: FRR's FOLDER/DAEMON.conf, BIRD's NAME.conf.
frr=/usr/lib/frr
# need_frr DAEMON...: whether FRR has these; else the test is skipped. FRR gives up root, and its user must reach its files.
need_frr() {
  local daemon
  for daemon in zebra "$@"; do
    [ -x "$frr/$daemon" ] || skip "FRR is not installed (frr)"
  done
  chmod 711 "$work"
}
# Options of FRR's daemons, by name, as in frr_options[zebra]; of one daemon of one folder as in frr_options[frr-l/bfdd].
declare -A frr_options=()
# start_frr NAMESPACE FOLDER DAEMON...: zebra and these daemons.
start_frr() {
  local ns=$1 name=$2 folder=$work/$2 daemon options
  shift 2
  [ -e "$folder/zebra.conf" ] || echo 'hostname zebra' >"$folder/zebra.conf"
  chown -R frr:frr "$folder" || skip "there is no user frr"
  rm -f "$folder"/*.vty "$folder/zserv.api"
  for daemon in zebra "$@"; do
    options="${frr_options[$daemon]:-} ${frr_options[$name/$daemon]:-}"
    [ "$daemon" != bfdd ] || options+=" --bfdctl $folder/bfdd.sock"
    # shellcheck disable=SC2086
    ip netns exec "$ns" "$frr/$daemon" $options --vty_socket "$folder" -z "$folder/zserv.api" -i "$folder/$daemon.pid" \
      -f "$folder/$daemon.conf" --log "file:$folder/$daemon.log" >>"$folder/$daemon.out" 2>&1 &
    disown
    [ "$daemon" != zebra ] || await 10 test -S "$folder/zserv.api" || fail "zebra does not start: $(tail -n 3 "$folder"/zebra.*)"
  done
}
# end_frr FOLDER [SIGNAL]: ends its daemons.
end_frr() {
  # shellcheck disable=SC2046
  kill "${@:2}" $(cat "$work/$1"/*.pid)
}
# vty FOLDER COMMAND: asks FRR.
vty() { timeout 10 vtysh --vty_socket "$work/$1" -c "$2" 2>&1; }

# start_bird NAMESPACE NAME: BIRD with NAME.conf.
start_bird() {
  ip netns exec "$1" bird -f -c "$work/$2.conf" -s "$work/$2.ctl" -P "$work/$2.pid" >"$work/$2.log" 2>&1 &
  disown
}
# Prefixes of Linux that the router follows, in its only namespace with pairs, and how often announcements were lost.
followed() { ctl show lcp netlink | awk '/prefixes:/ { print $2 }'; }
announcements_lost() { ctl show lcp netlink | sed -n 's/.*listings:.* lost \([0-9]*\).*/\1/p'; }

# ask_bird NAME COMMAND...
ask_bird() { timeout "${BIRD_TIMEOUT:-10}" birdc -s "$work/$1.ctl" "${@:2}" 2>&1; }

# bird_with NAMESPACE NAME ROUTER PROTOCOLS: BIRD with these protocols beside the kernel's.
bird_with() {
  cat >"$work/$2.conf" <<CONF
router id $3;
protocol device { scan time 1; }
protocol kernel { ipv4 { export all; }; }
protocol kernel { ipv6 { export all; }; }
$4
CONF
  start_bird "$1" "$2"
}
# bird_ospf INTERFACE [PREFIX PREFIX6]: OSPF of both families on an interface, with networks that are announced.
bird_ospf() {
  local port="interface \"$1\" { type ptp; hello 1; dead 4; };"
  echo "protocol ospf v2 { ipv4 { import all; export none; }; area 0 { $port ${2:+stubnet $2;} }; }"
  echo "protocol ospf v3 { ipv6 { import all; export none; }; area 0 { $port ${3:+stubnet $3;} }; }"
}

# usable NAMESPACE IMAGE...: whether images have a link-local address that is theirs. Zebra that starts while Linux still asks whether
# one is free never learns that it is.
usable() {
  local image
  for image in "${@:2}"; do
    ip -n "$1" -6 addr show dev "$image" scope link | grep fe80 | grep -qv tentative || return 1
  done
}
# with_ip6 NAMESPACE...: hosts there speak IPv6, too.
with_ip6() {
  local ns
  for ns in "$@"; do
    ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 net.ipv6.conf.lo.disable_ipv6=0 ||
      skip "the kernel has no IPv6"
  done
}
