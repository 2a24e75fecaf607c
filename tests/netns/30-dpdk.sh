#!/usr/bin/env bash
# DPDK's virtual devices as interfaces, without a NIC: packet sockets between real hosts, files that are compared byte for
# byte, a ring, frames out of nothing, and a memif whose other end is the router's own. Both families, MTU 9000, attached and
# detached under traffic; wrong words.
#
#   DPDK_PLUGIN=FOLDER scripts/in-namespace.sh tests/netns/30-dpdk.sh    # with a plugin that is there
# NEEDS=dpdk
. "$(dirname "$0")/lib.sh"
need ping iperf3 python3 ethtool
if [ -z "${DPDK_PLUGIN:-}" ]; then
  pkg-config --exists libdpdk 2>/dev/null || skip "DPDK's headers are not installed (libdpdk-dev)"
  DPDK_PLUGIN=$("$root/scripts/dpdk.sh") || fail "the plugin does not build"
fi
hosts
for end in "$A va 1" "$B vb 2"; do
  read -r ns port n <<<"$end"
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
  ip -n "$ns" link set eth0 mtu 9000
  ip -n "$R" link set "$port" mtu 9000
  ip -n "$ns" addr add "2001:db8:$n::2/64" dev eth0 nodad
  ip -n "$ns" route replace default via "2001:db8:$n::1"
  # DPDK's packet sockets know no open checksums and no superframes.
  ip netns exec "$ns" ethtool -K eth0 tx off tso off gso off >/dev/null 2>&1
done

# Words that are wrong end the start, in one line that names them and the nearest right one.
wrong() {
  local said=$1
  shift
  timeout 20 "$SHOAL" unix { nodaemon nosyslog runtime-dir "$work/wrong" } configuration { directory "$work/lib" } \
    plugins { path "$DPDK_PLUGIN" } "$@" >"$work/wrong.log" 2>&1 && fail "the router starts with $*"
  grep -q -- "$said" "$work/wrong.log" || fail "$* does not say '$said': $(tail -n 3 "$work/wrong.log")"
}
wrong "dpdk: the stanza has no setting .vdve., did you mean .vdev" dpdk { no-pci vdve net_null0 }
wrong "vdev net_null0 has no setting .num-rx-quues., did you mean .num-rx-queues" dpdk { no-pci vdev net_null0 { num-rx-quues 2 } }
wrong "net_nul0 is no virtual device of DPDK, did you mean .net_null" dpdk { no-pci no-hugetlb vdev net_nul0 }
wrong "num-rx-queues 5, expected 1 to 1" dpdk { no-pci no-hugetlb vdev "net_af_packet0,iface=lo" { num-rx-queues 5 } }
says "no dpdk_plugin.so" "$SHOAL" --check-config unix { nodaemon } plugins { path "$work" } dpdk { no-pci } ||
  fail "a stanza without a reader is not reported"

start_router plugins { path "$DPDK_PLUGIN" plugin dpdk_plugin.so { enable } } cpu { workers 1 } \
  dpdk { no-pci no-hugetlb dev default { num-rx-desc 512 } vdev "net_af_packet0,iface=va" { name east workers 0 } \
         vdev "net_af_packet1,iface=vb" { name west } vdev net_null0 { num-rx-queues 2 } }
says 'DPDK Version' ctl show dpdk version || fail "$(ctl show dpdk version)"
says 'without effect' cat "$work/shoal.log" && fail "the stanza is reported to be without effect"

# set_up NAME NUMBER: addresses, up; the hosts forget an address that was another device's.
set_up() {
  expect "address" ctl set interface ip address "$1" "10.0.$2.1/24"
  expect "address" ctl set interface ip address "$1" "2001:db8:$2::1/64"
  expect "state" ctl set interface state "$1" up
  ip -n "$A" neigh flush dev eth0
  ip -n "$B" neigh flush dev eth0
}
reaches() { in_a ping -c 1 -W 1 10.0.2.2 && in_a ping -6 -c 1 -W 1 2001:db8:2::2; }
# all WORDS...: ping without any loss.
all() {
  local out
  out=$(in_a "$patient_ping" -q "$@")
  grep -q ' 0% packet loss' <<<"$out" || fail "ping $*: $out"
}
set_up east 1
set_up west 2
await 10 reaches || fail "host b does not answer: $(ctl show hardware-interfaces)"
for to in 10.0.2.2 2001:db8:2::2; do all -c 200 -i 0.01 -W 10 "$to"; done
expect "trace" ctl trace add dpdk-input 5
await 5 reaches || fail "host b does not answer a second time"
says 'dpdk: hw_if_index .* rx queue 0 .* len 98' ctl show trace || fail "no line of dpdk-input in $(ctl show trace)"
says 'hw_if_index .* tx queue .* len 98' ctl show trace || fail "no line of a tx node in $(ctl show trace)"
says 'extended stats' ctl show hardware-interfaces east detail || fail "no counters of the device"
says 'rx_good_packets' ctl show hardware-interfaces east detail || fail "$(ctl show hardware-interfaces east detail)"
says '"lines"' ctl --json show dpdk buffer || fail "$(ctl --json show dpdk buffer)"
says 'has no receive interrupts' ctl set interface rx-mode east interrupt || fail "interrupts are reported to be there"
says 'net_af_packet0 has no receive interrupts' cat "$work/shoal.log" || fail "the log does not say that packet sockets have none"
says 'rx interrupts: none' ctl show hardware-interfaces east || fail "$(ctl show hardware-interfaces east)"
says 'rx queue 0: no interrupts' ctl show hardware-interfaces east detail || fail "$(ctl show hardware-interfaces east detail)"
says 'nearest 9702' ctl set interface mtu 20000 east || fail "$(ctl set interface mtu 20000 east)"

in_b iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
await 5 listens "$B" 5201 || fail "iperf3 does not listen at host b"
# iperf WORDS: Mbit/s that arrived.
iperf() {
  in_a iperf3 -t 2 -J "$@" >"$work/iperf.json" 2>&1 || fail "iperf3 $*: $(grep '"error"' "$work/iperf.json" || head -c 400 "$work/iperf.json")"
  python3 - "$work/iperf.json" <<'PYTHON'
import json, sys
end = json.load(open(sys.argv[1]))["end"]
got = end["sum"] if "sum" in end else end["sum_received"]
print(int(got["bytes"] * 8 / got["seconds"] / 1e6))
PYTHON
}
rates=
for to in 10.0.2.2 2001:db8:2::2; do
  for way in '' -R; do
    # Packets of 1,500 bytes: the sockets' frames hold no more.
    # shellcheck disable=SC2086
    rate=$(iperf -c "$to" -M 1400 $way) || fail "$rate"
    [ "$rate" -ge 5 ] || fail "only $rate Mbit/s to $to (iperf3 $way): $(ctl show errors)"
    rates+=" $rate"
  done
done

# Detached and attached under traffic, both ways; then for jumbo frames.
in_a ping -q -i 0.005 -W 1 10.0.2.2 >/dev/null 2>&1 &
helpers+=($!)
noise=$!
for _ in 1 2 3 4 5; do
  expect "detach" ctl dpdk detach west
  expect "attach" ctl dpdk attach "net_af_packet1,iface=vb" name west
  set_up west 2
  await 10 reaches || fail "host b does not answer after the device was attached again: $(ctl show errors)"
done
kill "$noise"
says 'west .* is an interface already\|net_af_packet0 is an interface already' ctl dpdk attach "net_af_packet0,iface=va" ||
  fail "a device is attached twice: $(ctl dpdk attach "net_af_packet0,iface=va")"
says 'is no device of dpdk, expected one of' ctl dpdk detach local0 || fail "local0 is a device: $(ctl dpdk detach local0)"
for port in "east 0 va 1" "west 1 vb 2"; do
  read -r made number device n <<<"$port"
  expect "detach" ctl dpdk detach "$made"
  says 'framesz 16384, expected at most 9728' ctl dpdk attach "net_af_packet$number,iface=$device,framesz=16384,blocksz=65536" ||
    fail "frames that no packet holds are taken"
  expect "attach" ctl dpdk attach "net_af_packet$number,iface=$device,framesz=9728,blocksz=77824" name "$made" mtu 9000
  set_up "$made" "$n"
done
await 10 reaches || fail "host b does not answer with MTU 9000: $(ctl show errors)"
for to in 10.0.2.2 2001:db8:2::2; do all -c 20 -i 0.02 -W 10 -s 8900 -M 'do' "$to"; done
says 'dpdk attach net_af_packet1,iface=vb,framesz=9728,blocksz=77824 name west mtu 9000' ctl show running-config ||
  fail "what was attached is not in the configuration: $(ctl show running-config)"

# Frames out of nothing, faster than anybody wants them: a device comes and goes among them, nothing is left.
null_frames() { [ "$(counter net_null0 'rx packets')" -gt 100000 ]; }
expect "state" ctl set interface state net_null0 up
await 10 null_frames || fail "no frames of net_null0: $(ctl show interface net_null0)"
for n in 1 2 3 4 5; do
  expect "attach" ctl dpdk attach net_null1 num-rx-queues 2
  expect "state" ctl set interface state net_null1 up
  expect "mtu" ctl set interface mtu $((1500 + n * 1000)) net_null1
  expect "detach" ctl dpdk detach net_null1
done
expect "state" ctl set interface state net_null0 down
expect "detach" ctl dpdk detach net_null0

# A ring gives back what it gets: a packet whose neighbour is the interface itself goes round until its hops are used up.
expect "attach" ctl dpdk attach net_ring0
expect "state" ctl set interface state net_ring0 up
expect "address" ctl set interface ip address net_ring0 10.0.7.1/24
expect "address" ctl set interface ip address net_ring0 2001:db8:7::1/64
mac=$(ctl show hardware-interfaces net_ring0 | awk '/Ethernet address/ { print $3; exit }')
expect "neighbour" ctl set ip neighbor net_ring0 10.0.7.9 "$mac" static
expect "neighbour" ctl set ip neighbor net_ring0 2001:db8:7::9 "$mac" static
expect "clear" ctl clear interfaces
ctl ping 10.0.7.9 repeat 2 interval 0.1 >/dev/null
ctl ping 2001:db8:7::9 repeat 2 interval 0.1 >/dev/null
rounds() { [ "$(counter net_ring0 ip4)" -ge 100 ] && [ "$(counter net_ring0 ip6)" -ge 100 ]; }
await 5 rounds || fail "the ring does not go round: $(ctl show interface net_ring0) $(ctl show errors)"

# A file in, a file out, every byte as it must be.
python3 - "$work/empty.pcap" <<'PYTHON'
import struct, sys
open(sys.argv[1], "wb").write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
PYTHON
cp "$work/empty.pcap" "$work/in.pcap"
expect "attach" ctl dpdk attach "net_pcap0,rx_pcap=$work/in.pcap" name in mtu 9000
expect "attach" ctl dpdk attach "net_pcap1,rx_pcap=$work/empty.pcap,tx_pcap=$work/out.pcap" name out mtu 9000
expect "address" ctl set interface ip address in 10.0.10.1/24
expect "address" ctl set interface ip address in 2001:db8:10::1/64
expect "address" ctl set interface ip address out 10.0.8.1/24
expect "address" ctl set interface ip address out 2001:db8:8::1/64
expect "neighbour" ctl set ip neighbor out 10.0.8.2 02:00:00:00:00:02 static
expect "neighbour" ctl set ip neighbor out 2001:db8:8::2 02:00:00:00:00:02 static
expect "up" ctl set interface state out up
station() { ctl show hardware-interfaces "$1" | awk '/Ethernet address/ { print $3; exit }'; }
cat >"$work/files.py" <<'PYTHON'
import random, socket, struct, sys
what, mac, into = sys.argv[1], bytes.fromhex(sys.argv[2].replace(":", "")), sys.argv[3]
far, random_ = bytes.fromhex("020000000002"), random.Random(7)

def total(data):
    s = sum(struct.unpack(f">{len(data) // 2}H", data))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return 0xffff ^ s

def four(ttl, body):
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 0, ttl, 17, 0, socket.inet_aton("10.0.10.3"), socket.inet_aton("10.0.8.2"))
    return head[:10] + struct.pack(">H", total(head)) + head[12:] + body

def six(hops, body):
    address = lambda a: socket.inet_pton(socket.AF_INET6, a)
    return struct.pack(">IHBB", 6 << 28, len(body), 17, hops) + address("2001:db8:10::3") + address("2001:db8:8::2") + body

def packets():
    for n, size in enumerate([0, 1, 18, 100, 1472 - 20, 2000, 2034, 2048, 4000, 6000, 8900] * 20):
        body = struct.pack(">HHHH", 1, 2, 8 + size, 0) + random_.randbytes(size)
        yield (four, 0x0800) if n % 2 == 0 else (six, 0x86dd), body

if what == "make":
    with open(into, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for (build, kind), body in packets():
            frame = mac + far + struct.pack(">H", kind) + build(64, body)
            f.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
else:
    data, at, got = open(into, "rb").read(), 24, []
    while at + 16 <= len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        got.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    # Redirects and advertisements of the router's own are not of the file.
    got = [g for g in got if g[:6] == far and g[23 if g[12:14] == b"\x08\x00" else 20] == 17]
    all_ = [far + mac + struct.pack(">H", kind) + build(63, body) for (build, kind), body in packets()]
    for family in (b"\x08\x00", b"\x86\xdd"):
        want = [w for w in all_ if w[12:14] == family]
        mine = [g for g in got if g[12:14] == family]
        if mine != want:
            sys.exit(f"{len(mine)} of {len(want)} packets, first difference at {next((i for i, (a, b) in enumerate(zip(mine, want)) if a != b), 'the end')}")
    print(len(got))
PYTHON
python3 "$work/files.py" make "$(station in)" "$work/in.new" && mv "$work/in.new" "$work/in.pcap" || fail "the file is not made"
source=$(station out)
# Files are opened by the start of the port, for the second time by the second one.
expect "up" ctl set interface state in up
expect "down" ctl set interface state in down
expect "up" ctl set interface state in up
read_all() { [ "$(counter out 'tx packets')" -ge 220 ]; }
await 10 read_all || fail "the file does not pass: $(ctl show interface) $(ctl show errors | grep -v info)"
expect "detach" ctl dpdk detach in
expect "detach" ctl dpdk detach out
same=$(python3 "$work/files.py" compare "$source" "$work/out.pcap" 2>&1) || fail "the file that came out is another: $same"

# DPDK's memif against the router's own: a - va - table 0 - net_memif0 = memif0/0 - table 10 - vb - b, MTU 9000, with the
# hosts' superframes and open checksums, which DPDK's device does not know and the router finishes.
for made in east west; do expect "detach" ctl dpdk detach "$made"; done
for ns in "$A" "$B"; do ip netns exec "$ns" ethtool -K eth0 tx on tso on gso on >/dev/null 2>&1; done
expect "table" ctl ip table add 10
expect "table" ctl ip6 table add 10
expect "host-interface" ctl create host-interface name va
expect "host-interface" ctl create host-interface name vb
expect "socket" ctl create memif socket id 1 filename "$work/run/dpdk.sock"
expect "memif" ctl create interface memif id 0 socket-id 1 master
expect "up" ctl set interface state memif1/0 up
expect "attach" ctl dpdk attach "net_memif0,role=client,id=0,socket=$work/run/dpdk.sock,socket-abstract=no" mtu 9000 name dm
for port in memif1/0 host-vb; do
  expect "table" ctl set interface ip table "$port" 10
  expect "table" ctl set interface ip6 table "$port" 10
done
set_up host-va 1
set_up host-vb 2
expect "up" ctl set interface state dm up
expect "address" ctl set interface ip address dm 10.0.9.1/24
expect "address" ctl set interface ip address dm 2001:db8:9::1/64
expect "address" ctl set interface ip address memif1/0 10.0.9.2/24
expect "address" ctl set interface ip address memif1/0 2001:db8:9::2/64
expect "route" ctl ip route add 10.0.2.0/24 via 10.0.9.2 dm
expect "route" ctl ip route add 2001:db8:2::/64 via 2001:db8:9::2 dm
expect "route" ctl ip route add 10.0.1.0/24 table 10 via 10.0.9.1 memif1/0
expect "route" ctl ip route add 2001:db8:1::/64 table 10 via 2001:db8:9::1 memif1/0
await 20 says 'flags.* connected' ctl show memif memif1/0 || fail "DPDK's memif does not connect: $(ctl show memif)"
await 10 reaches || fail "host b does not answer by way of memif: $(ctl show interface) $(ctl show errors)"
for to in 10.0.2.2 2001:db8:2::2; do
  all -c 20 -i 0.02 -W 10 "$to"
  all -c 20 -i 0.02 -W 10 -s 8900 -M 'do' "$to"
done
# With full rings and chains DPDK's device (22.11) sends stray packets, so TCP gets buffers that hold all.
expect "detach" ctl dpdk detach dm
expect "attach" ctl dpdk attach "net_memif0,role=client,id=0,bsize=9728,socket=$work/run/dpdk.sock,socket-abstract=no" mtu 9000 name dm
set_up dm 9
expect "route" ctl ip route add 10.0.2.0/24 via 10.0.9.2 dm
expect "route" ctl ip route add 2001:db8:2::/64 via 2001:db8:9::2 dm
await 20 reaches || fail "host b does not answer by way of memif the second time: $(ctl show memif) $(ctl show interface)"
memif=
for to in 10.0.2.2 2001:db8:2::2; do
  for way in '' -R; do
    # shellcheck disable=SC2086
    rate=$(iperf -c "$to" $way) || fail "$rate"
    [ "$rate" -ge 50 ] || fail "only $rate Mbit/s to $to by memif (iperf3 $way): $(ctl show errors)"
    memif+=" $rate"
  done
done
expect "detach" ctl dpdk detach dm

# A TAP of DPDK's has interrupts: its thread sleeps until they come. Where nothing is to be waited for, it naps.
for port in host-va host-vb net_ring0 memif1/0; do expect "down" ctl set interface state "$port" down; done
thread=$(grep -l '^vpp_wk_0$' "/proc/$router"/task/*/comm | head -n 1)
[ -n "$thread" ] || fail "no worker among $(cat "/proc/$router"/task/*/comm | tr '\n' ' ')"
# wakes SECONDS: how often the worker went to sleep.
sleeps() { awk '/^voluntary/ { print $2 }' "$(dirname "$thread")/status"; }
wakes() {
  local before
  before=$(sleeps)
  sleep "$1"
  echo $(($(sleeps) - before))
}
# tap SETTINGS...: the TAP, with an address at each end.
tap() {
  expect "attach" ctl dpdk attach net_tap0,iface=dtap num-tx-queues 1 "$@" name tapped
  ip -n "$R" addr add 10.0.12.2/24 dev dtap
  ip -n "$R" link set dtap up
  expect "state" ctl set interface state tapped up
  expect "address" ctl set interface ip address tapped 10.0.12.1/24
  await 10 in_r ping -c 1 -W 1 10.0.12.1 || fail "the TAP's router does not answer: $(ctl show interface tapped) $(ctl show errors)"
}
interrupts() { ctl show hardware-interfaces tapped detail | sed -n 's/.*rx queue 0: interrupts \([0-9]*\).*/\1/p'; }
# first: how long the first packet after a quiet time takes to go and come back, on average.
first() { in_r ping -q -c 10 -i 0.3 -W 1 10.0.12.1 | sed -n 's|.*= [0-9.]*/\([0-9.]*\)/.*|\1 ms|p'; }
tap no-rx-interrupts
says 'rx interrupts: not asked for' ctl show hardware-interfaces tapped || fail "$(ctl show hardware-interfaces tapped)"
says 'has no receive interrupts' ctl set interface rx-mode tapped interrupt || fail "there are unwanted interrupts"
naps=$(wakes 2) napping=$(first)
expect "detach" ctl dpdk detach tapped
tap
says 'rx interrupts: of all queues' ctl show hardware-interfaces tapped || fail "$(ctl show hardware-interfaces tapped)"
expect "mode" ctl set interface rx-mode tapped interrupt
says 'interrupt' ctl show interface rx-placement || fail "$(ctl show interface rx-placement)"
told=$(interrupts)
interrupt=$(first)
[ "$(interrupts)" -ge $((told + 5)) ] || fail "10 packets after quiet times, and interrupts from $told to $(interrupts)"
expect "mode" ctl set interface rx-mode tapped adaptive
told=$(interrupts)
adaptive=$(first)
[ "$(interrupts)" -ge $((told + 5)) ] || fail "10 packets after quiet times, and interrupts from $told to $(interrupts)"
sleeping=$(wakes 2)
[ "$sleeping" -lt 100 ] || fail "the thread of an idle TAP woke $sleeping times in 2 seconds: $(ctl show hardware-interfaces tapped detail)"
says 'nearest 1504' ctl set interface mtu 9000 tapped || fail "$(ctl set interface mtu 9000 tapped)"
# A port is stopped and started under its sleeping thread, which is woken by the new descriptors then.
for mtu in 1400 1500; do
  expect "mtu" ctl set interface mtu "$mtu" tapped
  told=$(interrupts)
  [ -n "$(first)" ] && [ "$(interrupts)" -ge $((told + 5)) ] || fail "no interrupts with MTU $mtu: $told to $(interrupts)"
done
expect "state" ctl set interface state tapped down
expect "state" ctl set interface state tapped up
await 5 in_r ping -c 1 -W 1 10.0.12.1 || fail "the TAP does not come up again"
told=$(interrupts)
[ -n "$(first)" ] && [ "$(interrupts)" -ge $((told + 5)) ] || fail "no interrupts after down and up: $told to $(interrupts)"
expect "mode" ctl set interface rx-mode tapped polling
polling=$(first)
expect "detach" ctl dpdk detach tapped

await 5 no_buffers_used || fail "$(buffers_used) buffers are in use after all"
says 'in use = 0' ctl show dpdk buffer || fail "packets of DPDK are in use after all: $(ctl show dpdk buffer)"
alive
stop_router || fail "the router does not end"
pass "packet sockets$rates Mbit/s, $same packets from file to file, memif$memif Mbit/s, TAP idle for 2 s: $naps \
naps or $sleeping sleeps, first packet napping $napping, interrupt $interrupt, adaptive $adaptive, polling $polling"
