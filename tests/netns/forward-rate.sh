#!/usr/bin/env bash
# What the router forwards over a kernel's wire, and what a bare forwarder (DPDK's testpmd in mac mode, with its own driver
# for the same wire) gets across, run in turn.
#
#   scripts/in-namespace.sh tests/netns/forward-rate.sh af_packet|af_xdp|tap [WORDS of create ...]
#   ROUNDS=3 TIME=4 SIZE=64 scripts/in-namespace.sh tests/netns/forward-rate.sh af_xdp
#
#   testpmd txonly, core 0 --- [wire] forwarder, core 1 [wire] --- the kernel, which counts
#
# The sender is always the same: net_af_packet. Nothing is judged; the last line is the ratio of the medians.
. "$(dirname "$0")/lib.sh"
need ip dpdk-testpmd taskset
driver=${1:-af_packet}
shift
words=("$@")
: "${ROUNDS:=3}" "${TIME:=4}" "${SIZE:=64}"
far=02:00:00:00:00:02
hosts

# testpmd NAMESPACE NAME CORE VDEVS -- WORDS: with ordinary memory, its forwarding thread on a core.
testpmd() {
  local ns=$1 name=$2 core=$3 vdevs=()
  shift 3
  while [ "$1" != -- ]; do vdevs+=("--vdev=$1"); shift; done
  shift
  (
    # With a period it does not wait for a key.
    exec ip netns exec "$ns" dpdk-testpmd --no-huge -m 256 --no-pci --no-shconf --no-telemetry \
      --file-prefix "shoal-$id-$name" --lcores "0@0,1@$core" "${vdevs[@]}" -- --total-num-mbufs=16384 --nb-cores=1 \
      --no-mlockall --auto-start --stats-period 600 "$@"
  ) >"$work/$name.log" 2>&1 </dev/null &
  helpers+=($!)
  last=$!
}
gone() { kill "$1" 2>/dev/null; wait "$1" 2>/dev/null; }

# Where the sender puts packets in, where the kernel counts what comes out: namespace and interface.
case $driver in
  tap) in_ns=$R in_if=t0 out_ns=$R out_if=t1 ;;
  af_packet | af_xdp) in_ns=$A in_if=eth0 out_ns=$B out_if=eth0 ;;
  *) fail "driver $driver, must be af_packet, af_xdp or tap" ;;
esac
arrived() { ip netns exec "$out_ns" cat "/sys/class/net/$out_if/statistics/rx_packets"; }
there() { ip -n "$in_ns" link show "$in_if" && ip -n "$out_ns" link show "$out_if"; }

# rate MAC: packets a second that come out while the sender sends to a MAC address.
rate() {
  testpmd "$in_ns" source 0 "net_af_packet0,iface=$in_if,blocksz=262144,framesz=2048,framecnt=2048,qpairs=1" -- \
    --forward-mode=txonly --txpkts="$SIZE" --eth-peer=0,"$1" --tx-ip=10.0.1.2,10.0.2.2
  local source=$last before after
  before=$(arrived)
  flows() { [ "$(arrived)" -gt $((before + 1000)) ]; }
  await 20 flows || { gone "$source"; tail -n 5 "$work/source.log" "$work/bare.log" >&2; echo 0; return; }
  sleep 1
  before=$(arrived)
  sleep "$TIME"
  after=$(arrived)
  gone "$source"
  echo $(((after - before) / TIME))
}

bare() {
  local vdevs name
  case $driver in
    af_packet) vdevs=(net_af_packet0,iface=va,blocksz=262144,framesz=2048,framecnt=2048 net_af_packet1,iface=vb,blocksz=262144,framesz=2048,framecnt=2048) ;;
    af_xdp) vdevs=(net_af_xdp0,iface=va net_af_xdp1,iface=vb) ;;
    tap) vdevs=(net_tap0,iface=t0 net_tap1,iface=t1) ;;
  esac
  testpmd "$R" bare 1 "${vdevs[@]}" -- --forward-mode=mac --eth-peer=1,$far --eth-peer=0,$far
  local forwarder=$last
  await 20 there || { tail -n 5 "$work/bare.log" >&2; gone "$forwarder"; echo 0; return; }
  sleep 2
  rate "$far"
  gone "$forwarder"
}

ours() {
  start_router cpu { main-core 0 corelist-workers 1 }
  local n ends=(va vb)
  for n in 0 1; do
    case $driver in
      af_packet) expect create ctl create host-interface name "${ends[n]}" "${words[@]}"; name=host-${ends[n]} ;;
      af_xdp) expect create ctl create interface af_xdp host-if "${ends[n]}" "${words[@]}"; name=${ends[n]}/0 ;;
      tap) expect create ctl create tap id $n host-if-name t$n "${words[@]}"; name=tap$n ;;
    esac
    expect address ctl set interface ip address "$name" 10.0.$((n + 1)).1/24
    expect state ctl set interface state "$name" up
    eval "name$n=$name"
  done
  expect neighbour ctl set ip neighbor "$name1" 10.0.2.2 $far static
  expect there await 5 there
  [ "$driver" != tap ] || for n in 0 1; do ip -n "$R" link set t$n up; done
  mac=$(ctl show hardware-interfaces "$name0" | awk '/Ethernet address/ { print $3; exit }')
  ctl clear runtime
  rate "$mac"
  [ -z "${V:-}" ] || { ctl show runtime; ctl show errors; ctl show hardware-interfaces; } >&2
  stop_router
}

# The middle one of numbers.
median() { printf '%s\n' "$@" | sort -n | awk '{ n[NR] = $1 } END { print n[int((NR + 1) / 2)] }'; }
all_bare=() all_ours=()
for round in $(seq "$ROUNDS"); do
  all_bare+=("$(bare)")
  all_ours+=("$(ours)")
  echo "$driver round $round: testpmd ${all_bare[-1]} pps, the router ${all_ours[-1]} pps"
done
b=$(median "${all_bare[@]}") o=$(median "${all_ours[@]}")
pass "$driver, $SIZE bytes: testpmd $b pps, the router $o pps, ratio $(awk -v b="$b" -v o="$o" 'BEGIN { print b ? sprintf("%.2f", o / b) : "none" }')"
