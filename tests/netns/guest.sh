# Virtual machines for the tests of real hosts: a Debian kernel booted directly by QEMU, with an initramfs made here.
#
# A test sources this file after lib.sh. Nothing is installed: the kernel's package is fetched and unpacked below target/guest
# (or $SHOAL_GUEST_CACHE), once. What a guest cannot have here ends the test with SKIP and the reason.
#
#   . "$(dirname "$0")/lib.sh"
#   . "$(dirname "$0")/guest.sh"
#   guest_kernel                                   # or: guest_kernel linux-image-cloud-amd64
#   guest_image virtio_pci virtio_net -- iperf3 /usr/share/misc/pci.ids <<'SH'
#   ip addr add 10.0.1.3/24 dev eth0; ip link set eth0 up
#   run ping -c 3 10.0.1.1
#   SH
#   begin
#   guest one -netdev tap,id=n0,ifname=t0,script=no,downscript=no -device virtio-net-pci,netdev=n0
#   guest_finished one 60
#   pass "$guest_how"
#
# guest_kernel [PACKAGE]      sets what the others use; PACKAGE (linux-image-amd64) is one that depends on the real one.
# guest_image MODULES -- WHAT makes the initramfs of the guests that follow: busybox; the kernel's modules of these names
#                             with those they need, loaded in the order of their needs; WHAT to copy: programs by name or
#                             path, files, folders, FROM:TO for another place; with every program and library come the
#                             libraries that it is linked with. Standard input is the script that the guest runs.
# guest_router                sets guest_router, an array of what to copy for a router in a guest: its programs, and guest-router.sh as
#                             /router.sh, which the script sources.
# guest NAME WORDS            boots a guest, with QEMU's words for its devices; `guest_pid` is QEMU's process, which ends
#                             with the test. What it says is in $work/NAME.log, QEMU's own words are in $work/NAME.qemu.
#                             Before it: guest_memory (MiB, 256), guest_cpus (1), guest_in (a namespace, or nothing),
#                             guest_words (for the kernel's command line; the script sees them as `words` says).
# guest_told NAME PATTERN     whether the guest has said a line that begins so.
# guest_finished NAME SECONDS waits for the script's end; the test fails if a `run` failed or the time is over.
#
# The script runs in busybox's shell, with lo up and /proc, /sys, /dev and /tmp there. `say TEXT` says a line to the test,
# `run COMMAND` runs one and says `ok COMMAND` or `FAILED COMMAND` with its output (kept in /tmp/out); `words NAME` is whether
# the kernel's command line has the word. After the script the guest says `done` and stays there; `poweroff -f` ends it.
#
# By KVM if a guest gets anywhere with it (`guest_how` is KVM), else in software (`guest_how` says so). There are machines
# with a /dev/kvm that no ordinary kernel boots with: a virtual machine without nested virtualization can have one that
# runs a guest's kernel by emulating instructions (the module kvm_pvm). It does what it does slowly, and stops with `KVM
# internal error` at the first instruction that it does not know: cmpxchg16b, xrstor, int3. No flag of the processor and no
# word for the kernel gets past int3, with which every kernel tests itself; QEMU's own translation takes seconds. What is
# found is kept beside the kernel. SHOAL_GUEST_ACCEL=kvm or =tcg decides instead.
# The kernel is unpacked here, too: its own unpacking takes longest of all that it does before its first line.

guest_memory=256 guest_cpus=1 guest_in= guest_words= guest_pid= guest_how=

# guest_kernel [PACKAGE]
guest_kernel() {
  local meta=${1:-linux-image-amd64} package cache=${SHOAL_GUEST_CACHE:-$root/target/guest} at version
  need qemu-system-x86_64 busybox cpio gzip depmod python3 dpkg-deb apt-get apt-cache
  [ "$(uname -m)" = x86_64 ] || skip "guests are x86_64 ones"
  package=$(apt-cache depends "$meta" 2>/dev/null | awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
  [ -n "$package" ] || skip "the package archive has no $meta (apt-get update)"
  at=$cache/$package
  if [ ! -e "$at/ready" ]; then
    mkdir -p "$cache" "$work/guest-deb"
    (cd "$work/guest-deb" && apt-get download "$package" >"$work/apt.log" 2>&1) ||
      skip "cannot download $package: $(tail -n 1 "$work/apt.log")"
    # In a place of its own until it is whole: another test may be doing the same.
    dpkg-deb -x "$work/guest-deb/$package"_*.deb "$cache/$package.$id" || skip "cannot unpack $package"
    rm -rf "$work/guest-deb" "$cache/$package.$id"/usr/share
    version=${package#linux-image-}
    [ -d "$cache/$package.$id/lib" ] || ln -s usr/lib "$cache/$package.$id/lib"
    depmod -b "$cache/$package.$id" "$version" || skip "depmod cannot read the modules of $package"
    guest_unpack "$cache/$package.$id/boot/vmlinuz-$version" "$cache/$package.$id/vmlinux"
    touch "$cache/$package.$id/ready"
    mv -T "$cache/$package.$id" "$at" 2>/dev/null || rm -rf "$cache/$package.$id"
  fi
  version=${package#linux-image-}
  guest_modules=$at/lib/modules/$version
  guest_kernel=$at/vmlinux
  [ -s "$guest_kernel" ] || guest_kernel=$at/boot/vmlinuz-$version
  [ -s "$guest_kernel" ] && [ -d "$guest_modules" ] || skip "$package is not as expected"
  guest_accelerator "$at/accelerator"
}

# guest_unpack BZIMAGE VMLINUX: the kernel in the boot image, or nothing if its packing is unknown here.
guest_unpack() {
  python3 - "$1" "$2.packed" <<'PY' || return 0
import struct, sys
image = open(sys.argv[1], 'rb').read()
# The boot protocol's header: sectors of set-up code, where the packed kernel begins after them, its length.
start = ((image[0x1f1] or 4) + 1) * 512 + struct.unpack_from('<I', image, 0x248)[0]
open(sys.argv[2], 'wb').write(image[start:start + struct.unpack_from('<I', image, 0x24c)[0]])
PY
  local unpack
  # What follows the packed kernel is its size, which these take for rubbish and say so.
  case $(od -An -tx1 -N4 "$2.packed" | tr -d ' ') in
    1f8b*) unpack="gzip -qdc" ;;
    fd377a58) unpack="xz -qdc --single-stream" ;;
    02214c18) unpack="lz4 -qdc" ;;
    28b52ffd) unpack="zstd -qdc" ;;
    *) unpack=false ;;
  esac
  $unpack "$2.packed" >"$2" 2>/dev/null
  [ "$(od -An -tx1 -N4 "$2" | tr -d ' ')" = 7f454c46 ] || rm -f "$2"
  rm -f "$2.packed"
}

# guest_accelerator FILE: decides how guests run; FILE keeps it.
guest_accelerator() {
  local choice=${SHOAL_GUEST_ACCEL:-} known here
  here="$(uname -r) $(qemu-system-x86_64 --version | head -n 1)"
  if [ -z "$choice" ] && [ -r "$1" ]; then
    { read -r known; read -r choice; } <"$1"
    [ "$known" = "$here" ] || choice=
  fi
  if [ -z "$choice" ] && [ ! -w /dev/kvm ]; then
    choice="tcg in software, no /dev/kvm"
  elif [ -z "$choice" ]; then
    guest_use kvm
    guest_image </dev/null
    guest try
    guest_reached() { guest_told try done || grep -q 'KVM internal error' "$work/try.qemu" || ! kill -0 "$guest_pid" 2>/dev/null; }
    await 20 guest_reached
    if guest_told try done; then choice=kvm; else choice="tcg in software, KVM boots no kernel here"; fi
    guest_stop "$guest_pid"
    printf '%s\n%s\n' "$here" "$choice" >"$1.$id" && mv "$1.$id" "$1"
  fi
  guest_use "$choice"
}

# guest_use WORD [HOW]: kvm or tcg.
guest_use() {
  case $1 in
    kvm*) guest_machine=(-machine "pc,accel=kvm" -cpu "host,-arch-capabilities") guest_how=KVM ;;
    *) guest_machine=(-machine "pc,accel=tcg" -cpu max) guest_how=${1#tcg} guest_how=${guest_how# } guest_how=${guest_how:-in software} ;;
  esac
}

# guest_image [MODULE...] [-- PROGRAM...]
guest_image() {
  local tree=$work/guest-tree names=() name file from to
  rm -rf "$tree"
  mkdir -p "$tree"/{bin,dev,proc,sys,mod,tmp,run,etc,usr/bin,usr/sbin,lib64}
  file=$(command -v busybox)
  ! ldd "$file" 2>/dev/null | grep -q '=>' || skip "busybox is not a static one (busybox-static)"
  cp "$file" "$tree/bin/busybox"
  while [ $# -gt 0 ] && [ "$1" != -- ]; do names+=("$1"); shift; done
  [ $# -eq 0 ] || shift
  for name in "${names[@]}"; do guest_module "$tree" "$name"; done
  for name in "$@"; do
    from=${name%%:*} to=${name#*:}
    case $from in /*) ;; *) from=$(command -v "$from") || skip "$name is not installed"; [ "$to" != "$name" ] || to=$from ;; esac
    [ -e "$from" ] || skip "$from is not there"
    mkdir -p "$tree$(dirname "$to")"
    cp -rL "$from" "$tree$to" || fail "cannot copy $from for a guest"
    find -L "$from" -type f \( -perm -u+x -o -name '*.so*' \) -print | while read -r file; do ldd "$file" 2>/dev/null; done |
      grep -o '/[^ ]*' | sort -u | while read -r file; do
        [ -e "$tree$file" ] || { mkdir -p "$tree$(dirname "$file")" && cp -L "$file" "$tree$file"; }
      done
  done
  cat >"$tree/script"
  cat >"$tree/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/sbin:/usr/bin:/usr/sbin:/usr/local/bin HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mkdir -p /dev/pts /dev/shm; mount -t devpts pts /dev/pts
# What is printed here is for the test, and the kernel's own lines must not break into it.
dmesg -n 1
say() { echo "GUEST $*"; }
run() { if "$@" >/tmp/out 2>&1; then say "ok $*"; else say "FAILED $*"; sed 's/^/GUEST: /' /tmp/out; false; fi; }
words() { grep -qw -- "$1" /proc/cmdline; }
# A server that has just served a client may be busy with it for a moment more.
iperf3() {
  local try code
  for try in $(seq 50); do
    command iperf3 "$@" >/tmp/iperf 2>&1
    code=$?
    grep -q 'server is busy' /tmp/iperf || break
    sleep 0.2
  done
  cat /tmp/iperf
  return $code
}
while read -r module; do insmod "/mod/$module" || say "FAILED insmod $module"; done </mod/order
ip link set lo up
say booted
. /script
say done
while :; do sleep 1000; done
INIT
  touch "$tree/mod/order"
  chmod +x "$tree/init"
  (cd "$tree" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$work/guest.initrd" || fail "cannot pack the initramfs"
  rm -rf "$tree"
}

# guest_router
guest_router() {
  local part
  need strip
  mkdir -p "$work/parts"
  for part in "$SHOAL:shoal" "$SHOALCTL:shoalctl"; do
    strip -o "$work/parts/${part#*:}" "${part%%:*}" || fail "cannot strip ${part%%:*}"
    chmod +x "$work/parts/${part#*:}"
  done
  guest_router=("$work/parts/shoal:/bin/shoal" "$work/parts/shoalctl:/bin/shoalctl" "$root/tests/netns/guest-router.sh:/router.sh")
}

# guest_module TREE NAME: a module and those that it needs, unless the kernel has it built in.
guest_module() {
  local paths path file pattern=${2//[-_]/[-_]}
  ! grep -q "/$pattern\.ko" "$guest_modules/modules.builtin" || return 0
  # `a.ko: b.ko c.ko`: all that it needs, what is needed first stands last.
  paths=$(grep -E "(^|/)$pattern\.ko[^:/]*:" "$guest_modules/modules.dep" | head -n 1)
  [ -n "$paths" ] || fail "the guests' kernel has no module $2"
  for path in $(tr ' ' '\n' <<<"${paths/:/}" | tac); do
    file=$(basename "$path")
    file=${file%%.ko*}.ko
    [ ! -e "$1/mod/$file" ] || continue
    case $path in
      *.ko) cp "$guest_modules/$path" "$1/mod/$file" ;;
      *.xz) xz -dc "$guest_modules/$path" >"$1/mod/$file" ;;
      *.zst) zstd -qdc "$guest_modules/$path" >"$1/mod/$file" ;;
      *.gz) gzip -dc "$guest_modules/$path" >"$1/mod/$file" ;;
    esac || fail "cannot unpack $path"
    echo "$file" >>"$1/mod/order"
  done
}

# guest NAME WORDS
guest() {
  local name=$1 in=()
  shift
  [ -z "$guest_in" ] || in=(ip netns exec "$guest_in")
  : >"$work/$name.log"
  "${in[@]}" qemu-system-x86_64 "${guest_machine[@]}" -smp "$guest_cpus" -m "$guest_memory" -nodefaults -no-user-config \
    -display none -no-reboot -serial "file:$work/$name.log" -kernel "$guest_kernel" -initrd "$work/guest.initrd" \
    -append "console=ttyS0 panic=-1 quiet mitigations=off tsc=reliable $guest_words" "$@" >"$work/$name.qemu" 2>&1 &
  guest_pid=$!
  helpers+=("$guest_pid")
}

# guest_stop PID: ends a guest at once, as a machine that loses its power.
guest_stop() {
  kill -9 "$1" 2>/dev/null
  wait "$1" 2>/dev/null
  local i
  for i in "${!helpers[@]}"; do [ "${helpers[$i]}" != "$1" ] || unset "helpers[$i]"; done
  helpers=("${helpers[@]}")
}

guest_told() { grep -aq "^GUEST $2" "$work/$1.log"; }
guest_finished() {
  await "$2" guest_told "$1" done ||
    fail "guest $1 does not come to an end: $(tail -n 20 "$work/$1.log" | tr -d '\r'; tail -n 5 "$work/$1.qemu")"
  ! guest_told "$1" FAILED || fail "guest $1: $(grep -a '^GUEST' "$work/$1.log" | tr -d '\r')"
}
