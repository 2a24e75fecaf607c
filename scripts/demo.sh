#!/usr/bin/env bash
# Two hosts and a router between them, on this machine, in namespaces: what Shoal does, in under a minute.
# KEEP=1 stays with the router's CLI at the end. Whatever happens, nothing is left behind.
#
#   host a 10.0.1.2 --- 10.0.1.1  Shoal  10.0.2.1 --- 10.0.2.2 host b
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
PATH="$PATH:$HOME/.cargo/bin"

if [ -z "${DEMO_IN_NAMESPACE:-}" ]; then
  if [ ! -x target/release/shoal ] || [ ! -x target/release/shoalctl ] || [ -z "${MAKELEVEL:-}" ]; then
    scripts/release.sh -p shoal -p shoalctl || exit 1
  fi
  # Power over a network of our own: as root, or in a user namespace. The helper says so if neither is possible.
  DEMO_IN_NAMESPACE=1 exec scripts/in-namespace.sh "$PWD/scripts/demo.sh"
fi

shoal=$PWD/target/release/shoal shoalctl=$PWD/target/release/shoalctl
A=shoal-demo-a-$$ B=shoal-demo-b-$$ R=shoal-demo-r-$$
work=$(mktemp -d "${TMPDIR:-/tmp}/shoal-demo.XXXXXX")
sock=$work/run/cli.sock
router=
begun=$SECONDS

cleanup() {
  trap '' EXIT INT TERM HUP
  local ns pids
  if [ -n "$router" ]; then
    kill "$router" 2>/dev/null
    for _ in $(seq 50); do kill -0 "$router" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$router" 2>/dev/null
    wait "$router" 2>/dev/null
  fi
  for ns in "$A" "$B" "$R"; do
    [ -e "/run/netns/$ns" ] || continue
    pids=$(ip netns pids "$ns" 2>/dev/null)
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill -9 $pids 2>/dev/null
    ip netns del "$ns"
  done
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

bold='' plain=''
# A file wants no escapes.
[ -t 1 ] && bold=$(tput bold 2>/dev/null || true) plain=$(tput sgr0 2>/dev/null || true)
title() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
# Shows a command, then runs it.
in_a() { printf '%shost-a#%s %s\n' "$bold" "$plain" "$*"; ip netns exec "$A" "$@"; }
ctl() { printf '%sshoal#%s %s\n' "$bold" "$plain" "$*"; quiet_ctl "$@"; }
quiet_ctl() { timeout 20 "$shoalctl" -s "$sock" "$@"; }
die() {
  printf '\ndemo: %s\n' "$*" >&2
  [ ! -s "$work/shoal.log" ] || { echo "--- the router's log"; tail -n 30 "$work/shoal.log"; } >&2
  exit 1
}
need() { command -v "$1" >/dev/null || die "$1 is not installed, 'make setup' installs it"; }
await() {
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || return 1
    sleep 0.1
  done
}

# host NAMESPACE ROUTER-END ADDRESS GATEWAY
host() {
  ip -n "$R" link add name "$2" type veth peer name eth0 netns "$1" || die "cannot make a veth pair"
  ip netns exec "$R" sysctl -qw "net.ipv6.conf.$2.disable_ipv6=1" 2>/dev/null
  ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 2>/dev/null
  ip -n "$R" link set "$2" up
  ip -n "$1" link set lo up
  ip -n "$1" addr add "$3" dev eth0
  ip -n "$1" link set eth0 up
  ip -n "$1" route add default via "$4"
}

for tool in ip ping traceroute iperf3; do need "$tool"; done
title "Two hosts, and a router in a namespace of its own"
for ns in "$A" "$B" "$R"; do ip netns add "$ns" || die "cannot make network namespaces"; done
host "$A" va 10.0.1.2/24 10.0.1.1
host "$B" vb 10.0.2.2/24 10.0.2.1
workers=0
[ "$(nproc)" -lt 2 ] || workers=1
mkdir "$work/run"
ip netns exec "$R" "$shoal" unix { nodaemon nosyslog runtime-dir "$work/run" } configuration { restore off } \
  cpu { workers "$workers" } \
  >"$work/shoal.log" 2>&1 &
router=$!
await 10 quiet_ctl show version || die "the router does not start"
cat "$work/shoal.log"
for port in va vb; do
  ctl create host-interface name $port || die "no interface"
  ctl set interface state host-$port up || die "no interface"
done
ctl set interface ip address host-va 10.0.1.1/24 || die "no address"
ctl set interface ip address host-vb 10.0.2.1/24 || die "no address"

title "Ping through the router (ARP first)"
await 5 ip netns exec "$A" ping -c 1 -W 1 10.0.2.2
in_a ping -c 3 -i 0.2 -W 2 10.0.2.2 || die "no answer from host b"
in_a ip neigh show
ctl show ip neighbors

title "Traceroute shows the router as the first hop"
in_a traceroute -n -w 1 -q 1 -m 4 10.0.2.2 || die "traceroute failed"

title "A packet's way through the graph"
ctl trace add af-packet-input 1
in_a ping -q -c 1 -W 2 10.0.2.2 || die "no answer from host b"
ctl show trace
ctl clear trace

title "iperf3, with the offloads the kernel switches on by default"
ip netns exec "$B" iperf3 -s -D -I "$work/iperf.pid" >/dev/null
# Looked up, not tried: iperf3's server would take a connection for a test, and refuse the real one for a moment.
listens() { ip netns exec "$B" ss -Hltn 'sport = :5201' | grep -q .; }
await 5 listens || die "iperf3 does not listen at host b"
in_a iperf3 -c 10.0.2.2 -t 4 -i 0 || die "iperf3 TCP failed"
# The usual socket buffer holds 5 ms of this rate: a receiver that waits that long for a processor loses datagrams that the
# router has long delivered. As much as the kernel allows.
window=$(cat /proc/sys/net/core/{r,w}mem_max 2>/dev/null | sort -n | head -n 1)
in_a iperf3 -c 10.0.2.2 -t 3 -i 0 -u -b 200M -w "${window:-212992}" || die "iperf3 UDP failed"

title "What the router counted"
ctl show interface
ctl show runtime
ctl show errors

title "Idle: two interfaces up, no traffic for 3 seconds"
quiet_ctl clear runtime
ticks() { awk '{ print $14 + $15 }' "/proc/$router/stat"; }
before=$(ticks)
sleep 3
used=$(($(ticks) - before))
ctl show runtime | grep -iE 'shoal#|thread|busy'
printf 'The process took %d.%d percent of one core.\n' $((used * 100 / (3 * $(getconf CLK_TCK)))) \
  $((used * 1000 / (3 * $(getconf CLK_TCK)) % 10))

printf '\n%sdone in %d seconds.%s\n' "$bold" $((SECONDS - begun)) "$plain"
if [ -n "${KEEP:-}" ]; then
  echo "KEEP=1: this is the router's CLI; quit ends the demo. The hosts, from another terminal of the same user:"
  echo "  nsenter -t $$ -m -U --preserve-credentials ip netns exec $A ping 10.0.2.2   (as root: ip netns exec $A ...)"
  "$shoalctl" -s "$sock"
fi
