#!/usr/bin/env bash
# What vhost-user moves, and how long a guest waits for a router that sleeps, on this machine.
#
#   scripts/in-namespace.sh tests/netns/measure-vhost-user.sh
#   SECONDS_EACH=5 WORKERS=1 scripts/in-namespace.sh tests/netns/measure-vhost-user.sh
#
# Packets of 64 bytes by way of DPDK's virtio driver, which is a front end as QEMU is one, without a machine around it: source
# and sink share a core, the router has the other. Then round trips between the router and a real guest's kernel, seldom ones
# and close ones, for each way to wait. Nothing is judged.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/guest.sh"
: "${SECONDS_EACH:=3}" "${WORKERS:=1}"
need ip dpdk-testpmd
ip netns add "$R" 2>"$work/why" || skip "no network namespaces here: $(cat "$work/why")"
# DPDK's memory without huge pages is a file that could be cut.
start_router cpu { workers "$WORKERS" } vhost-user { trust-guests }

# front NUMBER WORDS...: testpmd with a vhost-user front end.
front() {
  local number=$1
  shift
  (
    exec dpdk-testpmd --no-huge -m 128 --no-pci --no-shconf --no-telemetry --file-prefix "shoal-$id-$number" \
      --lcores "0@0,1@1" --log-level=lib.eal:3 --single-file-segments \
      --vdev="net_virtio_user0,path=$work/run/vm$number.sock,mac=02:fe:00:00:01:0$number,queue_size=1024,packed_vq=0" \
      -- --total-num-mbufs=8192 --nb-cores=1 --no-mlockall --stats-period 1 "$@"
  ) >"$work/front$number.log" 2>&1 </dev/null &
  helpers+=($!)
}
port() { echo "VirtualEthernet0/0/$1"; }
ready() { ! says 'not ready' ctl show vhost-user "$(port "$1")"; }
for n in 0 1; do
  expect "create vhost-user" ctl create vhost-user socket vm$n.sock server hwaddr 02:fe:00:00:00:0$n
  expect "state" ctl set interface state "$(port $n)" up
  expect "address" ctl set interface ip address "$(port $n)" 10.0.$n.1/24
  expect "address" ctl set interface ip address "$(port $n)" 2001:db8:$n::1/64
done
expect "neighbour" ctl set ip neighbor "$(port 1)" 10.0.1.2 02:fe:00:00:01:01 static
front 1 --forward-mode=rxonly --auto-start
await 20 ready 1 || fail "no sink: $(ctl show vhost-user) $(tail -n 5 "$work/front1.log")"
front 0 --forward-mode=txonly --auto-start --txpkts=64 --eth-peer=0,02:fe:00:00:00:00 --tx-ip=10.0.0.2,10.0.1.2
await 20 ready 0 || fail "no source: $(ctl show vhost-user) $(tail -n 5 "$work/front0.log")"
sent() { [ "$(counter "$(port 1)" 'tx packets')" -gt 1000 ]; }
await 10 sent || fail "nothing goes through: $(ctl show errors)"
expect "clear" ctl clear interfaces
expect "clear" ctl clear runtime
started=$(date +%s.%N)
sleep "$SECONDS_EACH"
in=$(counter "$(port 0)" 'rx packets') out=$(counter "$(port 1)" 'tx packets')
awk -v i="$in" -v o="$out" -v a="$started" -v b="$(date +%s.%N)" \
  'BEGIN { printf "testpmd: %d kpps taken, %d kpps given\n", i / (b - a) / 1000, o / (b - a) / 1000 }'
ctl show runtime | grep -E 'Name|vhost|VirtualEthernet|ip4' || true
for pid in "${helpers[@]}"; do guest_stop "$pid"; done

# A real guest.
guest_kernel
guest_image virtio_pci virtio_net -- iperf3 <<'GUEST'
ip link set eth0 up
ip addr add 10.0.2.2/24 dev eth0
for try in 1 2 3 4 5 6 7 8 9; do ping -c 1 -W 1 10.0.2.1 >/dev/null && break; done
trips() {
  seldom=$(ping -c 8 -i 1 -q 10.0.2.1 | sed -n 's/.*= //p')
  close=$(ping -c 500 -i 0.002 -q 10.0.2.1 | sed -n 's/.*= //p')
  say "least/average/most: seldom $seldom, close $close"
}
for round in 1 2 3; do
  say "next"
  # The router's side changes how it waits.
  sleep 2
  trips
done
GUEST
expect "create vhost-user" ctl create vhost-user socket vm2.sock server
expect "state" ctl set interface state "$(port 2)" up
expect "address" ctl set interface ip address "$(port 2)" 10.0.2.1/24
card=virtio-net-pci,netdev=n0,mac=52:54:00:00:00:02
[ "$guest_how" = KVM ] || card+=,vectors=0
guest two -object "memory-backend-memfd,id=ram,size=${guest_memory}M,share=on" -machine memory-backend=ram \
  -chardev "socket,id=c0,path=$work/run/vm2.sock,reconnect=1" -netdev vhost-user,id=n0,chardev=c0,queues=1 -device "$card"
said() { [ "$(grep -ac "^GUEST $1" "$work/two.log")" -ge "$2" ]; }
modes=(polling adaptive interrupt)
for n in 0 1 2; do
  await 60 said next $((n + 1)) || fail "the guest does not come to round $n: $(tail -n 5 "$work/two.log")"
  expect "rx-mode" ctl set interface rx-mode "$(port 2)" "${modes[$n]}"
  await 60 said least $((n + 1)) || fail "the guest does not end round $n: $(tail -n 5 "$work/two.log")"
  echo "guest ($guest_how), ${modes[$n]}: $(grep -a '^GUEST least' "$work/two.log" | tail -n 1 | tr -d '\r' | sed 's/GUEST //')"
done
guest_finished two 20
ctl show vhost-user "$(port 2)" | grep -E 'kicks|calls' || true
pass
