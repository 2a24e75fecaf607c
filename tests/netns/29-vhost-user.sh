#!/usr/bin/env bash
# A virtual machine behind vhost-user: QEMU/KVM, Debian's kernel booted directly, a small initramfs made here. The guest
# pings a real host through the router and runs iperf3 against it, in both families and both directions; then its
# hypervisor dies, and another one takes its place.
. "$(dirname "$0")/lib.sh"
need ping iperf3 python3 qemu-system-x86_64 busybox cpio
[ -w /dev/kvm ] || skip "no /dev/kvm here"

# kernel: sets `kernel` and `modules` to a Debian kernel: one that is installed, or the one that the package archive has.
kernel() {
  local cache=${SHOAL_KERNEL_CACHE:-$root/target/guest-kernel} package version
  if ! ls "$cache"/boot/vmlinuz-* >/dev/null 2>&1; then
    if ls /boot/vmlinuz-*-amd64 >/dev/null 2>&1 && find /lib/modules -name virtio_net.ko* | grep -q .; then
      cache=/
    else
      command -v apt-get >/dev/null || skip "no Debian kernel and no apt-get to get one"
      package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }')
      [ -n "$package" ] || skip "the package archive has no linux-image-cloud-amd64"
      mkdir -p "$cache"
      (cd "$work" && apt-get download "$package" >"$work/apt.log" 2>&1) || skip "cannot download $package"
      dpkg-deb -x "$work/$package"_*.deb "$cache" || skip "cannot unpack $package"
    fi
  fi
  kernel=$(ls "$cache"/boot/vmlinuz-*-amd64 | tail -n 1)
  version=${kernel##*/vmlinuz-}
  modules=$(ls -d "$cache/lib/modules/$version" "$cache/usr/lib/modules/$version" 2>/dev/null | head -n 1)
  [ -d "$modules" ] || skip "no modules of $kernel"
}

# initramfs: busybox, the driver's modules, iperf3 with its libraries, and what to do.
initramfs() {
  local tree=$work/initramfs file name
  mkdir -p "$tree"/{bin,dev,proc,sys,mod,lib64,lib/x86_64-linux-gnu,usr/bin,tmp}
  cp "$(command -v busybox)" "$tree/bin/busybox"
  ldd "$tree/bin/busybox" 2>/dev/null | grep -q '=>' && skip "busybox is not a static one (busybox-static)"
  for name in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net; do
    file=$(find "$modules" -name "$name.ko*" | head -n 1)
    case $file in
      *.ko) cp "$file" "$tree/mod/" ;;
      *.ko.xz) xz -dc "$file" >"$tree/mod/$name.ko" ;;
      *.ko.zst) zstd -qdc "$file" >"$tree/mod/$name.ko" ;;
    esac
  done
  cp "$(command -v iperf3)" "$tree/usr/bin/"
  for file in $(ldd "$(command -v iperf3)" | grep -o '/[^ ]*'); do
    mkdir -p "$tree$(dirname "$file")"
    cp -L "$file" "$tree$file"
  done
  cat >"$tree/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
# In the order of their needs, whatever that is in this kernel.
for round in 1 2 3; do
  for m in /mod/*.ko; do insmod $m 2>/dev/null; done
done
echo "GUEST booted"
ip link set lo up
for try in 1 2 3 4 5 6 7 8 9; do [ ! -e /sys/class/net/eth0 ] || break; sleep 0.2; done
# Neighbours and addresses are used at once.
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
ip link set eth0 up
ip addr add 10.0.3.2/24 dev eth0; ip -6 addr add 2001:db8:3::2/64 dev eth0
ip route add default via 10.0.3.1; ip -6 route add default via 2001:db8:3::1
say() { echo "GUEST $*"; }
run() { if "$@" >/tmp/out 2>&1; then say "ok $*"; else say "FAILED $*"; sed 's/^/GUEST: /' /tmp/out; fi; }
up() { for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do ping -c 1 -W 1 10.0.1.2 >/dev/null && ping -6 -c 1 -W 1 2001:db8:1::2 >/dev/null && return; done; false; }
run up
run ping -c 50 -i 0.02 -W 1 10.0.1.2
run ping -6 -c 50 -i 0.02 -W 1 2001:db8:1::2
run ping -c 5 -s 1400 -W 1 10.0.1.2
if grep -q iperf /proc/cmdline; then
  for words in "-c 10.0.1.2" "-c 10.0.1.2 -R" "-c 2001:db8:1::2" "-c 2001:db8:1::2 -R"; do
    run iperf3 $words -t 3 -f m
    [ ! -s /tmp/out ] || say "rate $words: $(grep receiver /tmp/out | sed 's/.*Bytes *//; s/ *receiver//')"
  done
fi
say "segments $(awk '/eth0/ { print $2 " bytes in " $3 " packets" }' /proc/net/dev)"
say done
sleep 1000
INIT
  chmod +x "$tree/init"
  (cd "$tree" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initrd.gz" || fail "cannot pack the initramfs"
}

# accelerator: how guests run: by KVM; in software where KVM is there, but a kernel does not get anywhere in it (some
# machines that are virtual themselves).
accelerator() {
  local try=$work/try.log
  machine="-machine q35,accel=kvm -cpu host,-arch-capabilities" how=KVM
  # shellcheck disable=SC2086
  qemu-system-x86_64 $machine -m 384 -nodefaults -display none -no-reboot -serial "file:$try" -kernel "$kernel" \
    -initrd "$work/initrd.gz" -append "console=ttyS0 panic=-1 quiet" >"$work/try.qemu" 2>&1 &
  helpers+=($!)
  if ! await 30 grep -aq 'GUEST booted' "$try"; then
    machine="-machine q35,accel=tcg -cpu max" how="no KVM: it boots no kernel here"
  fi
  kill "${helpers[-1]}" 2>/dev/null
}

# guest NAME WORDS: boots a guest whose console is in $work/NAME.log.
guest() {
  # shellcheck disable=SC2086
  ip netns exec "$R" qemu-system-x86_64 $machine -smp 1 -m 384 -nodefaults \
    -display none -no-reboot -serial "file:$work/$1.log" -kernel "$kernel" -initrd "$work/initrd.gz" \
    -append "console=ttyS0 panic=-1 quiet $2" \
    -object memory-backend-memfd,id=ram,size=384M,share=on -numa node,memdev=ram \
    -chardev socket,id=c0,path="$work/run/vm.sock",reconnect=1 \
    -netdev vhost-user,id=n0,chardev=c0,queues=1 \
    -device virtio-net-pci,netdev=n0,mac=52:54:00:00:00:02 >"$work/$1.qemu" 2>&1 &
  qemu=$!
  helpers+=("$qemu")
}
told() { grep -aq "GUEST $2" "$work/$1.log"; }
finished() {
  await "$2" told "$1" done || fail "the guest does not come to an end: $(tail -n 20 "$work/$1.log" "$work/$1.qemu")"
  ! told "$1" FAILED || fail "$(grep -a '^GUEST' "$work/$1.log")"
}

kernel
initramfs
accelerator
begin
ip netns exec "$A" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
ip -n "$A" -6 route replace default via 2001:db8:1::1
expect "interface address" ctl set interface ip address host-va 2001:db8:1::1/64
out=$(ctl create vhost-user socket vm.sock server) || fail "create vhost-user: $out"
port=VirtualEthernet0/0/0
[ "$out" = "$port" ] || fail "create vhost-user said: $out"
expect "interface state" ctl set interface state "$port" up
expect "interface address" ctl set interface ip address "$port" 10.0.3.1/24
expect "interface address" ctl set interface ip address "$port" 2001:db8:3::1/64
in_a iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
await 5 listens "$A" 5201 || fail "iperf3 does not listen at host a"

guest one iperf
finished one 180
says 'VIRTIO_NET_F_MRG_RXBUF' ctl show vhost-user || fail "$(ctl show vhost-user)"
says 'Memory regions (total [1-9]' ctl show vhost-user || fail "$(ctl show vhost-user)"
await 10 in_a ping -c 1 -W 1 10.0.3.2 || fail "host a does not reach the guest"
await 10 in_a ping -6 -c 1 -W 1 2001:db8:3::2 || fail "host a does not reach the guest by IPv6"
alive

# The hypervisor dies, under load.
in_a ping -q -f -w 5 10.0.3.2 >/dev/null 2>&1 &
flood=$!
sleep 1
kill -9 "$qemu"
wait "$flood" 2>/dev/null
down() { says 'not ready' ctl show vhost-user; }
await 10 down || fail "the link of a dead guest stays up: $(ctl show vhost-user)"
alive
guest two again
finished two 180

# The router dies, and another one serves the same guest: QEMU connects again.
stop_router || fail "the router does not end"
start_router
attach va 10.0.1.1/24
expect "interface address" ctl set interface ip address host-va 2001:db8:1::1/64
expect "create vhost-user" ctl create vhost-user socket vm.sock server
expect "interface state" ctl set interface state "$port" up
expect "interface address" ctl set interface ip address "$port" 10.0.3.1/24
await 20 in_a ping -c 1 -W 1 10.0.3.2 || fail "the guest is not back with the new router: $(ctl show vhost-user)"
expect "delete vhost-user" ctl delete vhost-user "$port"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$how; $(grep -a 'GUEST rate' "$work/one.log" | tr -d '\r' | sed 's/GUEST rate -c //' | paste -sd ';')"
