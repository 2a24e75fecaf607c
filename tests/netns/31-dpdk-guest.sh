#!/usr/bin/env bash
# A virtual machine that runs the router, with DPDK on two emulated NICs, between two real hosts: virtio-net, e1000e and
# vmxnet3, given to it by vfio-pci and an emulated IOMMU. Names as VPP's, both families, the link that goes.
#
#   NICS="e1000e" scripts/in-namespace.sh tests/netns/31-dpdk-guest.sh
#
#   host a --- va - br1 - t1   guest: GigabitEthernet0/5/0   router   GigabitEthernet0/6/0   t2 - br2 - vb --- host b
# NEEDS=dpdk qemu
# LIMIT=240
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/guest.sh"
: "${NICS:=virtio-net-pci e1000e vmxnet3}"
need ping iperf3 strip
if [ -z "${DPDK_PLUGIN:-}" ]; then
  pkg-config --exists libdpdk 2>/dev/null || skip "DPDK's headers are not installed (libdpdk-dev)"
  DPDK_PLUGIN=$("$root/scripts/dpdk.sh") || fail "the plugin does not build"
fi
libraries=/usr/lib/x86_64-linux-gnu drivers=()
pmds=$(echo "$libraries"/dpdk/pmds-*)
[ -d "$pmds" ] || skip "DPDK's drivers are not in $libraries/dpdk"
for driver in bus_pci bus_vdev mempool_ring net_virtio net_e1000 net_vmxnet3; do
  file=$(basename "$(readlink -f "$libraries/librte_$driver.so" || true)")
  [ -e "$pmds/$file" ] || skip "librte_$driver is not installed"
  # One file for each, as drivers need one another by name; the folder of drivers has links to them.
  drivers+=("$pmds/$file:/lib/x86_64-linux-gnu/${file%.*}")
done
guest_kernel
mkdir -p "$work/parts/plugins"
for part in "$SHOAL:shoal" "$SHOALCTL:shoalctl" "$DPDK_PLUGIN/dpdk_plugin.so:plugins/dpdk_plugin.so"; do
  strip -o "$work/parts/${part#*:}" "${part%%:*}" || fail "cannot strip ${part%%:*}"
  chmod +x "$work/parts/${part#*:}"
done
guest_memory=768 guest_words="intel_iommu=on"
# A board with an IOMMU, without which Debian's kernel lets vfio-pci have nothing.
guest_machine=("${guest_machine[@]/#pc,/q35,kernel-irqchip=split,}")
[ "$guest_how" = KVM ] || guest_machine=("${guest_machine[@]/kernel-irqchip=split,/}")
guest_image vfio_iommu_type1 vfio-pci -- "$work/parts/shoal:/bin/shoal" "$work/parts/shoalctl:/bin/shoalctl" "$work/parts/plugins:/plugins" \
  "${drivers[@]}" <<GUEST
mkdir -p $pmds /tmp/run /var/run
for driver in bus_pci bus_vdev mempool_ring net_virtio net_e1000 net_vmxnet3; do
  for file in /lib/x86_64-linux-gnu/librte_\$driver.so.*; do ln -s "\$file" "$pmds/\$(basename "\$file").0"; done
done
echo 100 >/proc/sys/vm/nr_hugepages
# The emulated one remaps no interrupts.
echo 1 >/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts
shoal unix { nodaemon nosyslog runtime-dir /tmp/run } configuration { directory /tmp/lib } plugins { path /plugins } \
  dpdk { uio-driver vfio-pci num-mbufs 4096 dev 0000:00:05.0 dev 0000:00:06.0 { num-rx-desc 256 } } >/tmp/shoal.log 2>&1 &
c() { shoalctl -s /tmp/run/cli.sock "\$@"; }
for try in \$(seq 100); do [ -S /tmp/run/cli.sock ] && break; sleep 0.3; done
[ -S /tmp/run/cli.sock ] || say "FAILED the router does not answer: \$(tail -n 25 /tmp/shoal.log | tr '\n' ' ')"
for n in 1 2; do
  port=GigabitEthernet0/\$((n + 4))/0
  run c set interface state \$port up
  run c set interface ip address \$port 10.0.\$n.1/24
  run c set interface ip address \$port 2001:db8:\$n::1/64
done
sed 's/^/GUEST: /' /tmp/shoal.log
c show hardware-interfaces | sed 's/^/GUEST: /'
say ready
# The hosts have the second port's link go when it is time for the next part; all of it is over when they have it come again.
port=GigabitEthernet0/6/0
is_down() { c show hardware-interfaces \$port | grep -q "\$port .* down"; }
await_down() { for try in \$(seq 500); do is_down && return; sleep 0.2; done; say "FAILED the link stays up before \$1"; }
await_up() { for try in \$(seq 100); do is_down || return; sleep 0.1; done; say "FAILED the link stays down"; }
interrupts() { c show hardware-interfaces GigabitEthernet0/5/0 detail | sed -n 's/.*rx queue 0: \(interrupts.*\)/\1/p'; }
ticks() { set -- \$(sed 's/.*) //' /proc/\$(pidof shoal)/stat); echo \$((\${12} + \${13})); }
sleeps() { sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' /proc/\$(pidof shoal)/status; }
await_down "the quiet time"
before=\$(ticks) slept=\$(sleeps)
sleep 2
say "idle \$(((\$(ticks) - before) * 1000 / 200)) permille \$(((\$(sleeps) - slept) / 2)) sleeps a second \$(interrupts)"
for mode in interrupt polling adaptive; do
  for n in 5 6; do c set interface rx-mode GigabitEthernet0/\$n/0 \$mode || say "refused \$mode"; done
  await_up
  say "mode \$mode"
  await_down "mode \$mode ends"
  say "after \$mode \$(interrupts)"
done
await_up
# Until the hosts have done with it: the first port's link goes then.
for try in \$(seq 1000); do c show hardware-interfaces | grep -q 'GigabitEthernet0/5/0 .* down' && break; sleep 0.3; done
c show hardware-interfaces | grep -q 'GigabitEthernet0/5/0 .* down' && say "link is down"
c show hardware-interfaces detail | sed 's/^/GUEST: /'
c show errors | sed 's/^/GUEST: /'
run c dpdk detach GigabitEthernet0/5/0
run c dpdk attach 0000:00:05.0 name again
GUEST

hosts
for end in "$A va 1" "$B vb 2"; do
  read -r ns port n <<<"$end"
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
  ip -n "$ns" addr add "2001:db8:$n::2/64" dev eth0 nodad
  ip -n "$ns" -6 route replace default via "2001:db8:$n::1"
  ip -n "$R" link add "br$n" type bridge || skip "the kernel has no bridges"
  ip -n "$R" tuntap add "t$n" mode tap 2>/dev/null || skip "the kernel has no taps"
  for member in "$port" "t$n"; do ip -n "$R" link set "$member" master "br$n" && ip -n "$R" link set "$member" up; done
  ip -n "$R" link set "br$n" up
done
guest_in=$R
in_b iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
reached() { in_a ping -c 1 -W 1 10.0.2.2 && in_a ping -6 -c 1 -W 1 2001:db8:2::2; }
said() { grep -a '^GUEST' "$work/$1.log" | tr -d '\r' | tail -n 60; tail -n 5 "$work/$1.qemu"; }
# link DEVICE on|off: a cable of the guest's.
link() {
  python3 - "$work/$nic.monitor" "set_link $1 $2" <<'PYTHON'
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\n")
time.sleep(0.5)
PYTHON
}
results=
for nic in $NICS; do
  for ns in "$A" "$B"; do ip -n "$ns" neigh flush dev eth0; done
  # A virtio device goes through the IOMMU if it is told to.
  words=$nic
  [ "$nic" != virtio-net-pci ] || words+=,disable-legacy=on,iommu_platform=on
  guest "$nic" -device intel-iommu,intremap=off -monitor "unix:$work/$nic.monitor,server,nowait" \
    -netdev tap,id=n1,ifname=t1,script=no,downscript=no -device "$words,id=d1,netdev=n1,addr=5,mac=52:54:00:00:00:01" \
    -netdev tap,id=n2,ifname=t2,script=no,downscript=no -device "$words,id=d2,netdev=n2,addr=6,mac=52:54:00:00:00:02"
  ready() { guest_told "$nic" ready || guest_told "$nic" FAILED; }
  await 120 ready || fail "$nic: the guest's router does not get ready: $(said "$nic")"
  ! guest_told "$nic" FAILED || fail "$nic: $(said "$nic")"
  await 20 reached || fail "$nic: host b does not answer: $(said "$nic")"
  for to in 10.0.2.2 2001:db8:2::2; do
    out=$(in_a "$patient_ping" -q -c 50 -i 0.05 -W 2 -s 1400 "$to")
    grep -q ' 0% packet loss' <<<"$out" || fail "$nic: $to: $out"
    in_a iperf3 -c "$to" -t 2 -J >"$work/iperf.json" 2>&1 || fail "$nic: iperf3: $(grep error "$work/iperf.json")"
    rate=$(python3 -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["end"]["sum_received"]["bits_per_second"] / 1e6))' "$work/iperf.json")
    [ "$rate" -ge 1 ] || fail "$nic: only $rate Mbit/s to $to: $(said "$nic")"
    results+=" $nic $rate"
  done
  link d2 off
  told() { guest_told "$nic" "$1" || guest_told "$nic" FAILED; }
  await 60 told idle && guest_told "$nic" idle || fail "$nic: no quiet time: $(said "$nic")"
  results+=" ($(tr -d '\r' <"$work/$nic.log" | sed -n 's/^GUEST \(idle .*\)/\1/p')"
  for mode in interrupt polling adaptive; do
    link d2 on
    await 60 told "mode $mode" && guest_told "$nic" "mode $mode" || fail "$nic: no mode $mode: $(said "$nic")"
    await 20 reached || fail "$nic: host b does not answer in mode $mode: $(said "$nic")"
    out=$(in_a "$patient_ping" -q -c 5 -i 0.3 -W 2 10.0.2.2)
    grep -q ' 0% packet loss' <<<"$out" || fail "$nic: mode $mode: $out"
    results+=", $mode $(sed -n 's|.*= [0-9.]*/\([0-9.]*\)/.*|\1 ms|p' <<<"$out")"
    link d2 off
    await 60 told "after $mode" && guest_told "$nic" "after $mode" || fail "$nic: mode $mode does not end: $(said "$nic")"
  done
  link d2 on
  # Those of an e1000e never come by MSI-X: DPDK 22.11 assigns it no vectors.
  [ "$nic" = e1000e ] || guest_told "$nic" "after interrupt interrupts [1-9]" || fail "$nic: no receive interrupts: $(said "$nic")"
  results+=")"
  await 20 reached || fail "$nic: host b does not answer after all modes: $(said "$nic")"
  link d1 off
  guest_finished "$nic" 120
  guest_told "$nic" "link is down" || fail "$nic: the link's end is not seen: $(said "$nic")"
  guest_stop "$guest_pid"
done
pass "by $guest_how, Mbit/s:$results"
