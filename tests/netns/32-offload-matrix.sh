#!/usr/bin/env bash
# Every kind of port to every kind of port, itself included, with hosts that leave checksums and cutting to others: what
# arrives is what was sent, to the byte, by TCP and UDP, IPv4 and IPv6, and no receiver has seen a wrong checksum. Then the
# same with packets of 9,000 bytes.
#
#   hosts 1..7 --- tap  tap without offloads  veth (af_packet)  veth (af_xdp)  memif  net_tap (DPDK)  vhost-user --- hosts 8..14
#
# A host behind a memif, or behind vhost-user, is that of a second router's tap; its end of vhost-user is DPDK's net_virtio_user.
# NEEDS=dpdk
# LIMIT=240
. "$(dirname "$0")/lib.sh"
need ip iperf3 python3 ping nstat
[ -w /dev/net/tun ] || skip "there is no /dev/net/tun that this user may open"
: "${BYTES:=1500000}" "${IPERF:=6M}"
with_dpdk
kinds=(tap tap-off veth xdp memif)
[ ${#dpdk[@]} -eq 0 ] || kinds+=(dpdk vhost)
# Of each kind two: hosts 1 to K, which send, and K+1 to 2K.
K=${#kinds[@]}
firsts=$(seq "$K") seconds=$(seq $((K + 1)) $((2 * K))) all=$(seq $((2 * K)))
kind() { echo "${kinds[($1 - 1) % K]}"; }
host_ns() { echo "shoal-h$1-$id"; }
drop_hosts() {
  local i ns
  for i in $all; do
    ns=$(host_ns "$i")
    [ -e "/run/netns/$ns" ] || continue
    ip netns pids "$ns" 2>/dev/null | xargs -r kill -9 2>/dev/null
    ip netns del "$ns"
  done
}
trap 'drop_hosts; cleanup' EXIT
in_host() { local n=$1; shift; in_ns "$(host_ns "$n")" "$@"; }

ip netns add "$R" 2>"$work/why" || skip "no network namespaces here: $(cat "$work/why")"
for i in $all; do
  ns=$(host_ns "$i")
  ip netns add "$ns" || fail "cannot make a namespace"
  ip -n "$ns" link set lo up
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0
done
start_router cpu { workers 1 } vhost-user { trust-guests } "${dpdk[@]}"
start_far "${dpdk[@]}"
expect "socket" far create memif socket id 1 filename "$work/run/memif.sock"

# tap ROUTER N WORDS...: the router's tap whose other end is host N's eth0; prints its name.
tap() {
  local router=$1 n=$2
  shift 2
  "$router" create tap id "$n" host-ns "$(host_ns "$n")" host-if-name eth0 host-mtu-size 9000 \
    host-ip4-addr "10.9.$n.2/24" host-ip4-gw "10.9.$n.1" host-ip6-addr "2001:db8:9:$n::2/64" \
    host-ip6-gw "2001:db8:9:$n::1" "$@" || fail "create tap"
}
# veth N [MTU]: a cable whose ends are host N's eth0 and the router's vN.
veth() {
  local n=$1 mtu=${2:-9000} ns
  ns=$(host_ns "$n")
  ip -n "$R" link add name "v$n" mtu "$mtu" type veth peer name eth0 netns "$ns" mtu "$mtu" || fail "cannot make a veth pair"
  ip netns exec "$R" sysctl -qw "net.ipv6.conf.v$n.disable_ipv6=1"
  ip -n "$R" link set "v$n" up
  join "$n"
}
# join N: host N's eth0 has addresses and goes by the router.
join() {
  local n=$1 ns
  ns=$(host_ns "$n")
  ip -n "$ns" addr add "10.9.$n.2/24" dev eth0
  ip -n "$ns" addr add "2001:db8:9:$n::2/64" dev eth0
  ip -n "$ns" link set eth0 up
  ip -n "$ns" route add default via "10.9.$n.1"
  ip -n "$ns" -6 route add default via "2001:db8:9:$n::1"
}
# addresses ROUTER INTERFACE N: the gateway of host N.
addresses() {
  expect "address" "$1" set interface ip address "$2" "10.9.$3.1/24"
  expect "address" "$1" set interface ip address "$2" "2001:db8:9:$3::1/64"
  expect "state" "$1" set interface state "$2" up
}
# beyond N NEAR FAR: host N is that of the second router's tap, between NEAR of the first and FAR of the second is a cable. A
# table for each, so that what goes from one to the other crosses both cables.
beyond() {
  local n=$1 near=$2 beyond=$3 tap router interface
  tap=$(tap far "$n")
  expect "table" far ip table add "$n"
  expect "table" far ip6 table add "$n"
  for interface in "$beyond" "$tap"; do
    expect "table" far set interface ip table "$interface" "$n"
    expect "table" far set interface ip6 table "$interface" "$n"
  done
  addresses far "$tap" "$n"
  for router in "ctl $near 1" "far $beyond 2"; do
    read -r router interface i <<<"$router"
    expect "mtu" "$router" set interface mtu 9000 "$interface"
    expect "address" "$router" set interface ip address "$interface" "10.8.$n.$i/30"
    expect "address" "$router" set interface ip address "$interface" "2001:db8:8:$n::$i/64"
    expect "state" "$router" set interface state "$interface" up
  done
  expect "route" ctl ip route add "10.9.$n.0/24" via "10.8.$n.2" "$near"
  expect "route" ctl ip route add "2001:db8:9:$n::/64" via "2001:db8:8:$n::2" "$near"
  expect "route" far ip route add 0.0.0.0/0 table "$n" via "10.8.$n.1" "$beyond"
  expect "route" far ip route add ::/0 table "$n" via "2001:db8:8:$n::1" "$beyond"
}
ports=()
for n in $all; do
  case $(kind "$n") in
    tap) ports[n]=$(tap ctl "$n" gro-coalesce) && addresses ctl "${ports[n]}" "$n" ;;
    tap-off)
      ports[n]=$(tap ctl "$n" no-gso)
      expect "offload" ctl set tap offload "${ports[n]}" csum-offload-disable
      addresses ctl "${ports[n]}" "$n"
      ;;
    veth)
      veth "$n"
      expect "create host-interface" ctl create host-interface name "v$n"
      ports[n]=host-v$n
      addresses ctl "${ports[n]}" "$n"
      ;;
    xdp)
      veth "$n"
      expect "create interface af_xdp" ctl create interface af_xdp host-if "v$n" name "xdp-v$n" multi-buffer
      ports[n]=xdp-v$n
      addresses ctl "${ports[n]}" "$n"
      ;;
    memif)
      ports[n]=memif0/$n
      expect "memif" ctl create interface memif id "$n" master ring-size 2048
      expect "memif" far create interface memif id "$n" socket-id 1 slave ring-size 2048
      beyond "$n" "${ports[n]}" "memif1/$n"
      ;;
    dpdk)
      ports[n]=dpdk$n
      expect "attach" ctl dpdk attach "net_tap$n,iface=d$n" num-tx-queues 1 name "${ports[n]}"
      # The other end is a TAP of the kernel's in the router's namespace, with the MAC address of the driver's, which a bridge
      # would keep to itself. It leads on to the host.
      ip netns exec "$R" sysctl -qw "net.ipv6.conf.d$n.disable_ipv6=1"
      addresses ctl "${ports[n]}" "$n"
      ip -n "$R" link set "d$n" address "02:00:00:00:09:$(printf %02x "$n")" || fail "no address for d$n"
      veth "$n" 1500
      ip -n "$R" link add "b$n" type bridge || skip "the kernel has no bridges"
      ip netns exec "$R" sysctl -qw "net.ipv6.conf.b$n.disable_ipv6=1"
      for end in "v$n" "d$n"; do ip -n "$R" link set "$end" master "b$n" || fail "no bridge from $end"; done
      ip -n "$R" link set "b$n" up
      ;;
    vhost)
      ports[n]=$(ctl create vhost-user socket "vhost$n.sock" server) || fail "create vhost-user: ${ports[n]}"
      expect "attach" far dpdk attach "net_virtio_user$n,path=$work/run/vhost$n.sock,queue_size=1024" name "vhost$n"
      beyond "$n" "${ports[n]}" "vhost$n"
      ;;
  esac
  in_host "$n" python3 "$root/tests/netns/payload.py" serve 7000 >"$work/serve$n.log" 2>&1 &
  helpers+=($!)
done
for n in $seconds; do
  in_host "$n" iperf3 -s -D -I "$work/iperf$n.pid" >/dev/null || fail "iperf3 server"
done
for n in $all; do
  await 10 in_host "$n" ping -c 1 -W 1 "10.9.$n.1" || fail "no ping from host $n (${ports[n]})"
  await 10 in_host "$n" ping -c 1 -W 1 "2001:db8:9:$n::1" || fail "no ping by IPv6 from host $n (${ports[n]})"
  await 10 listens "$(host_ns "$n")" 7000 || fail "there is no listener at host $n: $(cat "$work/serve$n.log")"
done

others=()
for n in $seconds; do others+=("10.9.$n.2" "2001:db8:9:$n::2"); done
took=$SECONDS rates=() count=0
for mtu in 1500 9000; do
  for n in $all; do
    # net_tap sends no frame that is longer than Ethernet's.
    [ "$(kind "$n")" = dpdk ] || ip -n "$(host_ns "$n")" link set eth0 mtu "$mtu" || fail "MTU $mtu at host $n"
  done
  for n in $firsts; do
    said=$(PATIENCE=60 in_host "$n" python3 "$root/tests/netns/payload.py" send 7000 "$BYTES" "${others[@]}" 2>&1) \
      || fail "from host $n ($(kind "$n")) with an MTU of $mtu: $said"
    count=$((count + 2 * K))
    [ -z "${V:-}" ] || echo "from $(kind "$n"), MTU $mtu: $said"
  done
done
# Rates of each pair, for the reader; IPv4 and IPv6 by turns.
for n in $firsts; do
  ip -n "$(host_ns "$n")" link set eth0 mtu 1500
  row=()
  for m in $seconds; do
    to=10.9.$m.2
    [ $(((n + m) % 2)) -eq 0 ] || to=2001:db8:9:$m::2
    await 5 listens "$(host_ns "$m")" 5201 || fail "iperf3 does not listen at host $m"
    in_host "$n" iperf3 -c "$to" -n "$IPERF" -J >"$work/iperf.json" 2>&1 \
      || fail "iperf3 from $(kind "$n") to $(kind "$m"): $(head -c 400 "$work/iperf.json")"
    row+=("$(python3 -c 'import json, sys; print(round(json.load(open(sys.argv[1]))["end"]["sum_received"]["bits_per_second"] / 1e6))' "$work/iperf.json")")
  done
  rates+=("$(kind "$n") ${row[*]}")
done
[ -z "${V:-}" ] || printf '%s\n' "Mbit/s to ${kinds[*]}" "${rates[@]}"

for n in $all; do
  bad=$(ip netns exec "$(host_ns "$n")" env NSTAT_HISTORY="$work/nstat$n" nstat -a 2>/dev/null | awk '/InCsumErrors/ && $2 > 0 { print $1, $2 }')
  [ -z "$bad" ] || fail "host $n (${ports[n]}) has seen wrong checksums: $bad"
  for what in rx-error tx-error; do
    lost=$(counter "${ports[n]}" "$what")
    # A full ring loses packets, which TCP sends again.
    [ "$lost" -eq 0 ] || [ -n "$(ctl show errors | grep -E 'free tx slots|queue full|ring full|no available desc')" ] \
      || fail "${ports[n]} counts $lost $what: $(ctl show errors)"
  done
done
for what in 'offsets make no sense' 'refused for what it is' 'longer than' 'vnet header' 'frame longer'; do
  says "$what" ctl show errors && fail "$(ctl show errors)"
  says "$what" far show errors && fail "$(far show errors)"
done
says 'packets merged into another' ctl show errors || echo "nothing was merged by gro-coalesce" >>"$work/notes"
[ -z "${V:-}" ] || { ctl show errors; cat "$work/notes" 2>/dev/null; }

# Each kind of port in each mode, on each thread; its queues can be counted, and changed or the error says why not.
for n in $firsts; do
  port=${ports[n]}
  for mode in polling interrupt adaptive; do
    expect "rx-mode" ctl set interface rx-mode "$port" queue 0 "$mode"
    says "$port queue 0 ($mode)" ctl show interface rx-placement || fail "$(ctl show interface rx-placement)"
    for thread in main 'worker 0'; do
      # shellcheck disable=SC2086
      expect "rx-placement" ctl set interface rx-placement "$port" queue 0 $thread
      in_host "$n" ping -q -c 3 -i 0.05 -W 2 "10.9.$(((n % K) + K + 1)).2" >/dev/null \
        || fail "no ping through $port, $mode on $thread"
    done
  done
  says 'TX Queues' ctl show hardware-interfaces "$port" detail || fail "$(ctl show hardware-interfaces "$port" detail)"
  expect "tx-queue" ctl set interface tx-queue "$port" queue 0 threads 0-1
  out=$(ctl set interface rx-queues "$port" 2 2>&1)
  case $(kind "$n") in
    tap* | veth) says "$port queue 1" ctl show interface rx-placement || fail "$port: no second queue: $out" ;;
    xdp*) grep -q 'ask for up to 1' <<<"$out" || fail "$port: $out" ;;
    *) grep -q 'when it is created' <<<"$out" || fail "$port: $out" ;;
  esac
done

alive
# Their rings hold buffers while they exist.
for n in 4 $((K + 4)); do expect "delete" ctl delete interface af_xdp "${ports[n]}"; done
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$count ways, $((SECONDS - took)) s; Mbit/s $(IFS=';'; echo "${rates[*]}")$without"
