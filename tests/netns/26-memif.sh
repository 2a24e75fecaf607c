#!/usr/bin/env bash
# DPDK's testpmd at both ends of two memifs: packets of both families are forwarded, rates are printed, nothing is lost
# at 80 percent of the most, both peers die and come back.
#
#   SECONDS_EACH=5 WORKERS=1 scripts/in-namespace.sh tests/netns/26-memif.sh
#
#   testpmd txonly --- memif0/0   router   memif0/1 --- testpmd rxonly
# NEEDS=dpdk
. "$(dirname "$0")/lib.sh"
need ip dpdk-testpmd
: "${SECONDS_EACH:=2}" "${WORKERS:=1}"
cores=$(nproc)
[ "$cores" -ge 2 ] || skip "two cores are needed"
ip netns add "$R" 2>"$work/why" || skip "no network namespaces here: $(cat "$work/why")"
start_router cpu { workers "$WORKERS" }
mac0=02:fe:00:00:01:00 mac1=02:fe:00:00:01:01 far=02:00:00:00:00:02

# testpmd NAME CORE WORDS...: one with ordinary memory, its forwarding thread on a core.
testpmd() {
  local name=$1 core=$2
  shift 2
  (
    # Its command line ends with its input: it runs as long as nothing comes.
    exec dpdk-testpmd --no-huge -m 128 --no-pci --no-shconf --no-telemetry --file-prefix "shoal-$id-$name" \
      --lcores "0@0,1@$core" --log-level=lib.eal:3 "${vdevs[@]}" -- --total-num-mbufs=8192 --nb-cores=1 \
      --no-mlockall --stats-period 1 "$@"
  ) >"$work/$name.log" 2>&1 </dev/null &
  helpers+=($!)
  last=$!
}
memif() { vdevs+=(--vdev="net_memif$1,role=client,id=$1,rsize=10,bsize=2048,socket=$work/run/memif.sock,socket-abstract=no${2:+,$2}"); }

up() { says 'flags.* connected' ctl show memif "$1"; }
received() { counter "$1" 'rx packets'; }
sent() { counter "$1" 'tx packets'; }
got() { [ "$(received "$1")" -ge "$2" ]; }

for n in 0 1; do
  eval "mac=\$mac$n"
  expect "create memif" ctl create interface memif id $n master hw-addr "$mac" secret swordfish
  expect "address" ctl set interface ip address memif0/$n "10.0.$n.1/24"
  expect "address" ctl set interface ip address memif0/$n "2001:db8:$n::1/64"
  expect "state" ctl set interface state memif0/$n up
done
expect "neighbour" ctl set ip neighbor memif0/1 10.0.1.2 $far static
expect "neighbour" ctl set ip neighbor memif0/1 2001:db8:1::2 $far static
expect "neighbour" ctl set ip neighbor memif0/0 2001:db8:0::2 $far static

# A peer that does not know the secret is refused.
vdevs=()
memif 0
testpmd stranger 1 --forward-mode=rxonly --auto-start
says_refused() { says 'refused peers [1-9]' ctl show memif; }
await 20 says_refused || fail "no client was refused: $(ctl show memif) $(tail -n 5 "$work/stranger.log")"
kill "$last"
wait "$last" 2>/dev/null

# IPv4, as fast as it goes.
vdevs=()
memif 1 secret=swordfish
testpmd sink 1 --forward-mode=rxonly --auto-start
sink=$last
await 20 up memif0/1 || fail "the sink does not connect: $(ctl show memif) $(tail -n 5 "$work/sink.log")"
vdevs=()
memif 0 secret=swordfish
testpmd source 1 --forward-mode=txonly --auto-start --txpkts=64 --eth-peer=0,$mac0 --tx-ip=10.0.0.2,10.0.1.2
source=$last
await 20 up memif0/0 || fail "the source does not connect: $(ctl show memif) $(tail -n 5 "$work/source.log")"
await 10 got memif0/0 1000 || fail "nothing comes from testpmd: $(ctl show errors)"
expect "clear" ctl clear interfaces
expect "clear" ctl clear runtime
started=$(date +%s.%N)
sleep "$SECONDS_EACH"
forwarded=$(sent memif0/1)
most=$(awk -v n="$forwarded" -v a="$started" -v b="$(date +%s.%N)" 'BEGIN { printf "%d", n / (b - a) }')
[ "$most" -gt 0 ] || fail "nothing is forwarded: $(ctl show errors)"
[ -z "${V:-}" ] || { ctl show runtime; ctl show errors; ctl show memif; }

# The source dies, as does the sink, in the midst of it; others come in their place.
kill -9 "$source" "$sink"
wait "$source" "$sink" 2>/dev/null
down() { ! up memif0/0 && ! up memif0/1; }
await 10 down || fail "dead peers are still connected: $(ctl show memif)"
alive
await 5 no_buffers_used || fail "$(buffers_used) buffers are in use after the peers' death"

# The same from our own generator, which is both ends in one thread, because two peers that never sleep and a router want
# three cores: as fast as it goes, and at 80 percent of that.
"$SHOAL" unix { nodaemon nosyslog runtime-dir "$work/peer" } configuration { directory "$work/peer-lib" } \
  >"$work/peer.log" 2>&1 &
helpers+=($!)
peer=$!
peer() { timeout 20 "$SHOALCTL" -s "$work/peer/cli.sock" "$@"; }
await 10 peer show version || fail "the generator does not answer: $(cat "$work/peer.log")"
expect "socket" peer create memif socket id 1 filename "$work/run/memif.sock"
for n in 0 1; do
  expect "memif" peer create interface memif id $n socket-id 1 slave secret swordfish
  expect "state" peer set interface state memif1/$n up
done
expect "pg" peer create packet-generator interface pg0
await 20 up memif0/0 && await 20 up memif0/1 || fail "the generator does not connect: $(ctl show memif)"
# run NAME RATE PACKETS: lets the generator send; prints packets sent, packets back, and packets a second.
run() {
  local begun ended sent back
  peer clear interfaces >/dev/null
  peer packet-generator new "{ name $1 limit $3 ${2:+rate $2} interface pg0 node memif1/0-tx size 64-64 data { IP4: 02:00:00:00:00:09 -> $mac0 UDP: 10.0.0.2 -> 10.0.1.2 UDP: 1 -> 2 incrementing 14 } }" || return 1
  begun=$(date +%s.%N)
  peer packet-generator enable-stream "$1"
  while says ' Yes ' peer show packet-generator; do sleep 0.1; done
  ended=$(date +%s.%N)
  sleep 0.2
  sent=$(peer show interface memif1/0 | awk '/tx-error/ { n = $NF } END { print '"$3"' - n }')
  back=$(peer show interface memif1/1 | awk '/rx packets/ { print $NF; found = 1; exit } END { if (!found) print 0 }')
  awk -v s="$sent" -v b="$back" -v a="$begun" -v e="$ended" 'BEGIN { printf "%d %d %d\n", s, b, b / (e - a) }'
}
read -r fsent fback frate <<<"$(run fast '' $((SECONDS_EACH * 4000000)))"
[ "${fback:-0}" -gt 0 ] || fail "nothing comes back to the generator: $(ctl show errors) $(peer show packet-generator)"
[ -z "${V:-}" ] || ctl show runtime
read -r ssent sback srate <<<"$(run slow $((frate * 8 / 10)) $((SECONDS_EACH * frate * 8 / 10)))"
own="our generator: $((frate / 1000)) kpps ($fback of $fsent back), at 80 percent $((srate / 1000)) kpps ($sback of $ssent back)"
kill "$peer"
wait "$peer" 2>/dev/null
await 10 down || fail "the generator is gone, its memifs are still connected: $(ctl show memif)"

# Both families by way of testpmd, which sends what comes by one memif back by the other: pg0 - memif0/0 - testpmd -
# memif0/1 - pg1.
expect "pg" ctl create packet-generator interface pg0
expect "pg" ctl create packet-generator interface pg1
for n in 0 1; do expect "pg up" ctl set interface state pg$n up; done
expect "address" ctl set interface ip address pg1 10.0.3.1/24
expect "address" ctl set interface ip address pg1 2001:db8:3::1/64
expect "neighbour" ctl set ip neighbor pg1 10.0.3.2 $far static
expect "neighbour" ctl set ip neighbor pg1 2001:db8:3::2 $far static
expect "table" ctl ip table add 10
expect "table" ctl ip6 table add 10
expect "table of pg0" ctl set interface ip table pg0 10
expect "table of pg0" ctl set interface ip6 table pg0 10
expect "address" ctl set interface ip address pg0 10.0.4.1/24
expect "address" ctl set interface ip address pg0 2001:db8:4::1/64
expect "neighbour" ctl set ip neighbor memif0/0 10.0.0.2 $far static
expect "route" ctl ip route add 10.0.3.0/24 table 10 via 10.0.0.2 memif0/0
expect "route" ctl ip route add 2001:db8:3::/64 table 10 via 2001:db8::2 memif0/0
vdevs=()
memif 0 secret=swordfish
memif 1 secret=swordfish
testpmd mirror 1 --forward-mode=mac --auto-start --eth-peer=1,$mac1 --eth-peer=0,$mac0
await 20 up memif0/0 || fail "the mirror does not connect: $(ctl show memif) $(tail -n 5 "$work/mirror.log")"
await 20 up memif0/1 || fail "the mirror does not connect: $(ctl show memif) $(tail -n 5 "$work/mirror.log")"
pg0=$(ctl show hardware-interfaces pg0 | awk '/Ethernet address/ { print $3; exit }')
# A program that does not run for a while loses some on a machine of two cores: it is tried again until so many are
# back.
count=500 tries=0
expect "clear" ctl clear interfaces
whole() { [ "$(sent pg1)" -ge $((2 * count)) ]; }
until whole; do
  tries=$((tries + 1))
  [ "$tries" -le 5 ] || fail "$(sent pg1) of $((10 * count)) packets came back through testpmd: $(ctl show errors)"
  expect "stream" ctl packet-generator new "{ name four$tries limit $count rate 1000 interface pg0 size 100-100 data { IP4: 02:00:00:00:00:09 -> $pg0 UDP: 10.0.4.2 -> 10.0.3.2 UDP: 1 -> 2 incrementing 50 } }"
  expect "stream" ctl packet-generator new "{ name six$tries limit $count rate 1000 interface pg0 size 1400-1400 data { IP6: 02:00:00:00:00:09 -> $pg0 UDP: 2001:db8:4::2 -> 2001:db8:3::2 UDP: 1 -> 2 incrementing 1300 } }"
  expect "enable" ctl packet-generator enable-stream "four$tries"
  expect "enable" ctl packet-generator enable-stream "six$tries"
  LEAST_AWAIT=4 await 4 whole
done
back="$(sent pg1) of $((tries * 2 * count)) packets of both families there and back"
for family in ip4 ip6; do
  [ "$(counter memif0/1 "$family")" -gt 100 ] || fail "only $(counter memif0/1 "$family") packets of $family came back"
done

# What is there after all that.
expect "delete" ctl delete interface memif memif0/0
expect "delete" ctl delete interface memif memif0/1
await 5 no_buffers_used || fail "$(buffers_used) buffers are in use after all"
alive
stop_router || fail "the router does not end"
pass "$((most / 1000)) kpps from testpmd to testpmd; $own; $back"
