#!/usr/bin/env bash
# How fast a table like the Internet's comes by BGP: from the moment a peer announces it until no packet to any of its prefixes is lost,
# through this router and through Linux alone, with FRR (by the kernel, by FPM) and with BIRD.
#
#   scripts/in-namespace.sh tests/netns/measure-convergence.sh [shoal-frr shoal-fpm shoal-bird linux-frr linux-bird]
#   ROUTES4=1000000 ROUTES6=200000 SVG=convergence.svg scripts/in-namespace.sh tests/netns/measure-convergence.sh
#
# Packets go to a sample of 2,000 prefixes, 5,000 a second, so times are good for 0.4 s. Nothing is judged.
: "${ROUTES4:=1000000}" "${ROUTES6:=200000}" "${CTL_TIMEOUT:=120}"
. "$(dirname "$0")/lib.sh"
need python3 bird birdc
here=$(dirname "$0")
frr=/usr/lib/frr
[ -x "$frr/zebra" ] && [ -x "$frr/bgpd" ] || skip "FRR is not installed (frr)"
wipe() {
  local ns pids
  stop_router
  for ns in "$A" "$B" "$R" "$L"; do
    [ -e "/run/netns/$ns" ] || continue
    pids=$(ip netns pids "$ns" 2>/dev/null)
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill -9 $pids 2>/dev/null
    ip netns del "$ns"
  done
}
trap 'wipe; cleanup' EXIT
python3 "$here/convergence.py" feed "$ROUTES4" "$ROUTES6" "$work/feed.conf" "$work/sample" || fail "no table"
chmod 711 "$work"

# daemons DAEMON NAMESPACE: a BGP router in the namespace, with a session in each family to 10.0.2.2 and 2001:db8:2::2.
daemons() {
  if [ "$1" = bird ]; then
    cat >"$work/l.conf" <<'CONF'
router id 10.0.2.1;
protocol device { }
protocol kernel { ipv4 { export all; }; }
protocol kernel { ipv6 { export all; }; }
template bgp peer { connect retry time 1; connect delay time 1; }
protocol bgp from peer { local 10.0.2.1 as 65000; neighbor 10.0.2.2 as 65001; ipv4 { import all; export none; }; }
protocol bgp from peer { local 2001:db8:2::1 as 65000; neighbor 2001:db8:2::2 as 65001; ipv6 { import all; export none; }; }
CONF
    ip netns exec "$2" bird -f -c "$work/l.conf" -s "$work/l.ctl" -P "$work/l.pid" >"$work/l.log" 2>&1 &
    disown
    return
  fi
  rm -rf "$work/frr"
  mkdir "$work/frr"
  printf 'hostname zebra\n%s\n' "$([ "$1" != fpm ] || echo 'fpm address 127.0.0.1 port 2620')" >"$work/frr/zebra.conf"
  cat >"$work/frr/bgpd.conf" <<'CONF'
router bgp 65000
 bgp router-id 10.0.2.1
 no bgp ebgp-requires-policy
 neighbor 10.0.2.2 remote-as 65001
 neighbor 10.0.2.2 timers connect 1
 neighbor 2001:db8:2::2 remote-as 65001
 neighbor 2001:db8:2::2 timers connect 1
 address-family ipv4 unicast
  no neighbor 2001:db8:2::2 activate
 exit-address-family
 address-family ipv6 unicast
  neighbor 2001:db8:2::2 activate
 exit-address-family
CONF
  chown -R frr:frr "$work/frr"
  local with=(--vty_socket "$work/frr" -z "$work/frr/zserv.api")
  ip netns exec "$2" "$frr/zebra" "${with[@]}" -s 90000000 -i "$work/frr/zebra.pid" -f "$work/frr/zebra.conf" \
    $([ "$1" != fpm ] || echo '-M dplane_fpm_nl') >"$work/frr/zebra.out" 2>&1 &
  disown
  await 10 test -S "$work/frr/zserv.api" || fail "zebra does not start: $(tail -n 3 "$work/frr/zebra.out")"
  ip netns exec "$2" "$frr/bgpd" "${with[@]}" -i "$work/frr/bgpd.pid" -f "$work/frr/bgpd.conf" >"$work/frr/bgpd.out" 2>&1 &
  disown
}

# spent: the processor time of each thread that took some, so that one sees who had the processors.
spent() {
  local ns pid task
  for ns in "$R" "$L" "$B"; do
    [ -e "/run/netns/$ns" ] || continue
    for pid in $(ip netns pids "$ns"); do
      for task in "/proc/$pid/task"/*; do
        awk -v ns="${ns#shoal-}" '{ gsub(/[()]/, "", $2); if ($14 + $15 > 10) printf "%s %s %.1f, ", substr(ns, 1, 1), $2, ($14 + $15) / 100 }' "$task/stat" 2>/dev/null
      done
    done
  done
}

# round NAME: forwarder and daemon, as in linux-bird.
round() {
  local forwarder=${1%-*} daemon=${1#*-} where=$L host
  hosts
  for host in "$A" "$B"; do
    ip netns exec "$host" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
  done
  ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
  ip -n "$B" addr add 2001:db8:2::2/64 dev eth0 nodad
  ip -n "$A" -6 route add default via 2001:db8:1::1
  ip -n "$B" -6 route add default via 2001:db8:2::1
  if [ "$forwarder" = linux ]; then
    where=$R
    ip netns exec "$R" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv6.conf.va.disable_ipv6=0 \
      net.ipv6.conf.vb.disable_ipv6=0 net.ipv6.route.max_size=4000000
    ip -n "$R" link set lo up
    for host in va:1 vb:2; do
      ip -n "$R" addr add "10.0.${host#*:}.1/24" dev "${host%:*}"
      ip -n "$R" addr add "2001:db8:${host#*:}::1/64" dev "${host%:*}" nodad
    done
  else
    beside
    start_router cpu { workers 1 } linux-cp { lcp-sync }
    attach va 10.0.1.1/24
    attach vb 10.0.2.1/24
    expect "lcp create" ctl lcp create host-va host-if e0 netns "$L"
    expect "lcp create" ctl lcp create host-vb host-if e1 netns "$L"
    expect "address" ctl set interface ip address host-va 2001:db8:1::1/64
    expect "address" ctl set interface ip address host-vb 2001:db8:2::1/64
    [ "$daemon" != fpm ] || expect "fpm listen" ctl fpm listen 127.0.0.1:2620 netns "$L"
  fi
  sleep 3
  daemons "$daemon" "$where"
  cat >"$work/b.conf" <<CONF
router id 10.0.2.2;
protocol device { }
include "$work/feed.conf";
template bgp peer { connect retry time 1; connect delay time 1; }
protocol bgp peer4 from peer { local 10.0.2.2 as 65001; neighbor 10.0.2.1 as 65000; ipv4 { import none; export all; }; }
protocol bgp peer6 from peer { local 2001:db8:2::2 as 65001; neighbor 2001:db8:2::1 as 65000; ipv6 { import none; export all; }; }
CONF
  ip netns exec "$B" bird -f -c "$work/b.conf" -s "$work/b.ctl" -P "$work/b.pid" >"$work/b.log" 2>&1 &
  disown
  established() { [ "$(birdc -s "$work/b.ctl" show protocols | grep -c Established)" -eq 2 ]; }
  await 60 established || fail "$1: no sessions: $(birdc -s "$work/b.ctl" show protocols; tail -n 3 "$work/b.log")"
  python3 "$here/convergence.py" probe "$A" "$B" "$work/sample" "$work/$1.csv" "birdc -s $work/b.ctl enable '\"feed_*\"'" >"$work/$1.txt" ||
    fail "$1: the probe failed"
  read -r first last <"$work/$1.txt"
  printf '%-12s first packet %6s s, last lost packet %6s s; processor seconds: %s\n' "$1" "$first" "$last" "$(spent)"
  wipe
}
rounds=("$@")
[ ${#rounds[@]} -gt 0 ] || rounds=(shoal-frr shoal-fpm shoal-bird linux-frr linux-bird)
for one in "${rounds[@]}"; do round "$one"; done
if [ -n "${SVG:-}" ]; then
  files=("${rounds[@]/#/$work/}")
  python3 "$here/convergence.py" plot "$SVG" "${files[@]/%/.csv}"
fi
ended=1
echo "$ROUTES4 IPv4 and $ROUTES6 IPv6 prefixes"
