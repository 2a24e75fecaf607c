#!/usr/bin/env bash
# record-terminal.sh: makes the README's pictures in docs/pictures. terminal.svg: a router between two hosts, configured, looked
# into, and a change that cuts the operator off and comes back by itself. graph.svg: the ways that packets took through that
# router. Needs root, asciinema and graphviz (Debian) and svg-term-cli (npm); the programs are those of `make build`, or SHOAL
# and SHOALCTL.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
: "${SHOAL:=$PWD/target/release/shoal}" "${SHOALCTL:=$PWD/target/release/shoalctl}"
export SHOAL SHOALCTL

if [ "${1:-}" = scene ]; then
  # What is typed and shown, in the prepared namespaces.
  type_it() { printf '\033[1;32m%s\033[0m ' "$1"; local i; for ((i = 0; i < ${#2}; i++)); do printf '%s' "${2:i:1}"; sleep 0.03; done; sleep 0.3; printf '\n'; }
  host() { type_it 'host-a$' "$*"; ip netns exec rec-a "$@"; sleep "${PAUSE:-1}"; }
  ctl() { type_it 'router$' "shoalctl $*"; "$SHOALCTL" -s "$RUN/cli.sock" "$@"; sleep "${PAUSE:-1}"; }
  note() { printf '\n\033[1;36m# %s\033[0m\n' "$*"; sleep 0.8; }
  clear
  note "A router in a namespace, between two hosts. VPP's commands."
  for port in va vb; do
    PAUSE=0.2 ctl create host-interface name $port
    PAUSE=0.2 ctl set interface state host-$port up
  done
  PAUSE=0.2 ctl set interface ip address host-va 10.0.1.1/24
  PAUSE=0.2 ctl set interface ip address host-vb 10.0.2.1/24
  host ping -c 2 -i 0.3 10.0.2.2
  note "Which way did a packet take?"
  PAUSE=0.2 ctl trace add af-packet-input 2
  ip netns exec rec-a ping -q -c 1 10.0.2.2 >/dev/null
  PAUSE=3 ctl show trace paths
  note "A change that cuts us off. It comes back by itself unless we confirm it."
  type_it 'router$' 'shoalctl'
  {
    for line in 'configure set interface ip address del host-va 10.0.1.1/24' compare 'commit confirm 1'; do
      printf '\033[1;33mshoal#\033[0m %s\n' "$line" >&2
      echo "$line"
      sleep 0.8
    done
  } | "$SHOALCTL" -s "$RUN/cli.sock" -f -
  sleep 1
  PAUSE=0.5 host ping -q -c 2 -i 0.3 -W 1 10.0.2.2
  note "A minute later, nothing was confirmed:"
  until ip netns exec rec-a ping -q -c 1 -W 1 10.0.2.2 >/dev/null; do :; done
  PAUSE=3 host ping -q -c 2 -i 0.3 10.0.2.2
  exit 0
fi

for tool in asciinema svg-term dot; do command -v "$tool" >/dev/null || { echo "record-terminal: '$tool' is not installed"; exit 1; }; done
RUN=$(mktemp -d)
export RUN
stop() {
  kill "$router" 2>/dev/null
  for ns in rec-a rec-b rec-r; do ip netns del $ns 2>/dev/null; done
  rm -rf "$RUN"
}
trap stop EXIT
for ns in rec-a rec-b rec-r; do ip netns add $ns; done
host() { # NAMESPACE PORT ADDRESS GATEWAY
  ip -n rec-r link add "$2" type veth peer name eth0 netns "$1"
  ip -n rec-r link set "$2" up
  ip -n "$1" address add "$3" dev eth0
  ip -n "$1" link set eth0 up
  ip -n "$1" route add default via "$4"
}
host rec-a va 10.0.1.2/24 10.0.1.1
host rec-b vb 10.0.2.2/24 10.0.2.1
ip netns exec rec-r "$SHOAL" unix { nodaemon nosyslog runtime-dir "$RUN" } configuration { directory "$RUN/saved" } >"$RUN/log" 2>&1 &
router=$!
for _ in $(seq 50); do [ -S "$RUN/cli.sock" ] && break; sleep 0.1; done
# Pauses longer than two seconds are cut: the minute of the commit, above all.
asciinema rec --overwrite -q -i 2 --cols 100 --rows 30 -c "$0 scene" "$RUN/terminal.cast" &&
  svg-term --in "$RUN/terminal.cast" --out docs/pictures/terminal.svg --window --no-cursor --width 100 --height 30
# The graph: pings through the router, one to it, one beyond its routes, one whose time to live ends.
ctl() { "$SHOALCTL" -s "$RUN/cli.sock" "$@"; }
ctl clear trace
ctl trace add af-packet-input 40
a() { ip netns exec rec-a "$@" >/dev/null 2>&1; }
a ping -q -c 12 -i 0.05 10.0.2.2
a ping -q -c 2 -i 0.05 10.0.1.1
a ping -q -c 2 -i 0.05 -W 1 198.51.100.1
a ping -q -c 2 -i 0.05 -t 1 -W 1 10.0.2.2
a ip neigh flush all
a ping -q -c 1 10.0.1.1
ctl --json show trace paths >"$RUN/paths.json"
scripts/trace-graph.py <"$RUN/paths.json" | dot -Tsvg >docs/pictures/graph.svg
ls -l docs/pictures
