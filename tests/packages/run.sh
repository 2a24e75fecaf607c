#!/usr/bin/env bash
# The packages in a bare Debian, with a systemd of its own in a container without a network: installed, started, configured,
# crashed, upgraded, downgraded, removed and purged. Needs root, and Debian's debhelper, mmdebstrap and systemd-container.
# BUILT is the folder of the programs, as of scripts/deb.sh. KEEP=1 leaves the root in target/packages-test.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
: "${BUILT:=target/debug}"
work=$PWD/target/packages-test
root=$work/root
failed=0
ok() { echo "ok packages/$1"; }
fail() { echo "FAIL packages/$1: $2"; failed=1; }
skip() { echo "SKIP packages: $1"; exit 0; }

[ "$(id -u)" -eq 0 ] || skip "needs root"
for tool in dh mmdebstrap systemd-nspawn nsenter dpkg-deb; do
  command -v "$tool" >/dev/null || skip "'$tool' is not installed (make setup)"
done
[ -x "$BUILT/shoal" ] || { fail built "there is no $BUILT/shoal"; exit 1; }

# --- The root: Debian's own packages, what ours need among them, once.
mkdir -p "$work"
base=$work/debian.tar
if [ ! -s "$base" ]; then
  suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  if ! mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,iproute2,iputils-ping,libpcap0.8,libgcc-s1,procps \
    "$suite" "$work/new.tar" >"$work/mmdebstrap.log" 2>&1; then
    tail -n 5 "$work/mmdebstrap.log"
    skip "mmdebstrap could not make a root from Debian's mirror"
  fi
  mv "$work/new.tar" "$base"
fi
leader=
stop() {
  [ -z "$leader" ] || kill -KILL "$leader" 2>/dev/null
  wait 2>/dev/null
  ip link delete pk0 2>/dev/null
  [ -n "${KEEP:-}" ] || rm -rf "$root" "$work/again"
}
trap stop EXIT
rm -rf "$root" "$work/old" "$work/new" "$work/again"
mkdir -p "$root"
tar -xf "$base" -C "$root" --exclude './dev/*'

# --- The packages, of this version and the next; the same bytes in another folder.
version=$(dpkg-parsechangelog -SVersion)
export BUILT DEB_FLAGS="-Zgzip -z1"
OUT=$work/old scripts/deb.sh --pack-only >"$work/pack.log" || { cat "$work/pack.log"; fail pack "see above"; exit 1; }
VERSION=$version+next OUT=$work/new scripts/deb.sh --pack-only >>"$work/pack.log" || { fail pack "the next version"; exit 1; }
ok pack
mkdir -p "$work/again/target"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work/again" 2>/dev/null
[ ! -d target/sbom ] || cp -a target/sbom "$work/again/target/"
[ ! -d target/dpdk ] || cp -a target/dpdk "$work/again/target/"
time=$(scripts/commit-time.sh)
if (cd "$work/again" && SOURCE_DATE_EPOCH=$time BUILT=$(readlink -f "$OLDPWD/$BUILT") OUT=$work/again/packages scripts/deb.sh --pack-only >>"$work/pack.log") &&
  diff <(cd "$work/old" && sha256sum ./*.deb) <(cd "$work/again/packages" && sha256sum ./*.deb); then
  ok same-bytes
else
  fail same-bytes "two packings differ, see above"
fi

# --- Installed: nothing starts, nothing is enabled, nothing of the host changes.
files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./run -o -path ./tmp -o -path ./dev -o -path ./root -o -path ./opt \) -prune -o -print | sort); }
apt_leavings='^\./var/(lib/(dpkg|apt|systemd)|cache|log/(apt|dpkg|journal|lastlog|wtmp|btmp)|tmp)|^\./etc/(group|gshadow|passwd|shadow|subuid|subgid|machine-id|hostname|resolv|\.pwd)'
files | grep -vE "$apt_leavings" >"$work/before"
mkdir -p "$root/opt"
cp -r "$work/old" "$work/new" "$root/opt/"
in_chroot() { chroot "$root" env DEBIAN_FRONTEND=noninteractive "$@"; }
wanted=(shoal shoal-vpp-compat shoal-lab)
debs() { for name in "${wanted[@]}"; do (cd "$root" && ls "opt/$1/${name}_"*.deb 2>/dev/null | sed 's|^|/|'); done; }
mapfile -t old < <(debs old)
mapfile -t new < <(debs new)
if in_chroot apt-get install -y --no-install-recommends "${old[@]}" >"$work/install.log" 2>&1; then
  ok install
else
  tail -n 20 "$work/install.log"
  fail install "see above"
  exit 1
fi
enabled=$(find "$root/etc/systemd" -name 'shoal*' -o -name 'vpp*' | head -n 3)
outside=$(files | grep -vE "$apt_leavings" | comm -13 "$work/before" - | grep -vE '^\./(usr/|etc/shoal(/startup\.conf)?$|var/lib/(dpkg|systemd)|etc/systemd/system$)' | head -n 5)
if [ -z "$enabled" ] && [ -z "$outside" ]; then ok changes-nothing; else fail changes-nothing "$enabled $outside"; fi
dpkg-deb -c "$work"/old/shoal_*.deb >"$work/content"
for file in man8/shoal.8.gz man1/shoalctl.1.gz man1/shoalctl-stats.1.gz man1/shoalctl-api.1.gz man5/shoal.conf.5.gz doc/shoal/guide doc/shoal/copyright shoal/api; do
  grep -q "/usr/share/.*$file" "$work/content" || fail content "there is no $file in the package"
done

# --- A systemd of its own.
systemd-nspawn --quiet --register=no --keep-unit --boot --private-network --machine=shoalpk -D "$root" >"$work/boot.log" 2>&1 &
nspawn=$!
for _ in $(seq 100); do
  leader=$(pgrep -P "$nspawn" | head -n 1)
  [ -n "$leader" ] && [ -S "$root/run/systemd/private" ] 2>/dev/null && break
  sleep 0.2
done
inside() { nsenter -t "$leader" -m -u -i -n -p -- env PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive HOME=/root "$@"; }
# wait_for SECONDS COMMAND...
wait_for() {
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || return 1
    sleep 0.2
  done
}
if ! wait_for 40 inside systemctl is-system-running --wait && ! inside systemctl list-units >/dev/null 2>&1; then
  tail -n 20 "$work/boot.log"
  skip "systemd does not run in a container here"
fi
shoal_pid() { inside systemctl show -p MainPID --value shoal; }
state() { inside systemctl show -p ActiveState --value "$1"; }
if [ "$(state shoal)" = inactive ] && [ "$(inside systemctl is-enabled shoal)" = disabled ]; then ok stays-off; else fail stays-off "$(state shoal)"; fi

# --- Started, with its watchdog; real packets through a veth pair.
ip link add pk0 type veth peer name pk1
ip link set pk1 netns "$leader"
ip address add 192.0.2.2/24 dev pk0
ip link set pk0 up
if inside systemctl start shoal && [ "$(state shoal)" = active ]; then
  ok start
else
  inside journalctl -u shoal -n 30 --no-pager
  fail start "see above"
  exit 1
fi
[ "$(inside systemctl show -p WatchdogUSec --value shoal)" = 30s ] || fail watchdog "$(inside systemctl show -p WatchdogUSec --value shoal)"
expect() { # NAME PATTERN COMMAND...
  local name=$1 pattern=$2 out
  shift 2
  out=$("$@" 2>&1)
  if grep -qE "$pattern" <<<"$out"; then ok "$name"; else fail "$name" "expected $pattern, got: $(head -c 300 <<<"$out")"; fi
}
expect vppctl '^vpp v26\.06-shoal' inside vppctl show version
expect vpp-api-files 'memclnt.api.json' inside ls /usr/share/vpp/api/core
expect run-vpp 'api.sock' inside ls /run/vpp/
expect socket-group 'shoal' inside stat -c %G /run/shoal/cli.sock
inside ip link set pk1 up
commit() { inside bash -c 'shoalctl -f -' <<<"$1"; }
out=$(commit "configure create host-interface name pk1
configure set interface ip address host-pk1 192.0.2.1/24
configure set interface state host-pk1 up
commit comment first")
if wait_for 10 ping -c 1 -W 1 -I pk0 192.0.2.1; then ok configured; else fail configured "no answer to ping; $out"; fi
expect revision 'first' inside shoalctl show configuration revisions

# --- A crash inside the window of a commit that is to be confirmed: the configuration before it is back.
out=$(commit "configure set interface ip address del host-pk1 192.0.2.1/24
commit confirm 5")
! ping -c 1 -W 1 -I pk0 192.0.2.1 >/dev/null 2>&1 || fail cut "the address still answers: $out"
before=$(shoal_pid)
inside kill -KILL "$before"
if wait_for 15 ping -c 1 -W 1 -I pk0 192.0.2.1 && [ "$(shoal_pid)" != "$before" ]; then ok crash-in-window; else fail crash-in-window "$(state shoal) $(shoal_pid)"; fi

# --- A stuck router is started again by the watchdog, here after 2 seconds.
inside mkdir -p /run/systemd/system/shoal.service.d
inside bash -c 'printf "[Service]\nWatchdogSec=2\n" >/run/systemd/system/shoal.service.d/test.conf'
inside systemctl daemon-reload
inside systemctl restart shoal
before=$(shoal_pid)
inside kill -STOP "$before"
another_pid() { local pid; pid=$(shoal_pid); [ "$pid" != 0 ] && [ "$pid" != "$before" ]; }
if wait_for 20 another_pid && wait_for 10 ping -c 1 -W 1 -I pk0 192.0.2.1; then ok watchdog; else fail watchdog "$(state shoal)"; fi

# --- Upgraded under traffic: the router goes on, the new one starts when asked, with the configuration; then back.
before=$(shoal_pid)
ping -i 0.01 -c 400 -q -W 1 -I pk0 192.0.2.1 >"$work/ping" 2>&1 &
pinger=$!
inside apt-get install -y "${new[@]}" >"$work/upgrade.log" 2>&1 || { tail -n 20 "$work/upgrade.log"; fail upgrade "see above"; }
wait "$pinger"
if [ "$(shoal_pid)" = "$before" ] && grep -q ' 0% packet loss' "$work/ping" && grep -q "restart shoal' starts the new" "$work/upgrade.log"; then
  ok upgrade
else
  fail upgrade "$(tail -n 2 "$work/ping") $(grep -c restart "$work/upgrade.log")"
fi
[ "$(inside dpkg-query -W -f '${Version}' shoal)" = "$version+next" ] || fail upgrade "the version is $(inside dpkg-query -W shoal)"
# An image in Linux is the same interface for its programs before and after.
out=$(commit "configure lcp create host-pk1 host-if image0
commit comment image")
image() { inside ip -br link show dev image0 2>/dev/null | awk '{ print $1, $2, $3 }'; inside cat /sys/class/net/image0/ifindex; }
image=$(image)
inside ip monitor link dev image0 >"$work/links" 2>&1 &
watcher=$!
inside systemctl restart shoal
if wait_for 15 ping -c 1 -W 1 -I pk0 192.0.2.1; then ok upgrade-keeps-configuration; else fail upgrade-keeps-configuration "$(state shoal)"; fi
kill "$watcher"
if [ -n "$image" ] && [ "$image" = "$(image)" ] && ! grep -qE 'NO-CARRIER|Deleted' "$work/links"; then
  ok restart-keeps-image
else
  fail restart-keeps-image "was $image, is $(image); $out; $(cat "$work/links")"
fi
inside apt-get install -y --allow-downgrades "${old[@]}" >"$work/downgrade.log" 2>&1 || { tail -n 20 "$work/downgrade.log"; fail downgrade "see above"; }
inside systemctl restart shoal
if wait_for 15 ping -c 1 -W 1 -I pk0 192.0.2.1; then ok downgrade; else fail downgrade "$(state shoal)"; fi

# --- VPP's start-up file, in its place.
inside mkdir -p /etc/vpp
inside bash -c 'echo "unix { nodaemon log /var/log/vpp/vpp.log cli-listen /run/vpp/cli.sock gid vpp } api-segment { gid vpp } socksvr { default }" >/etc/vpp/startup.conf'
inside systemctl start vpp
if ! inside ip link show dev image0 >/dev/null 2>&1; then ok stop-takes-image; else fail stop-takes-image "a stopped service leaves its image"; fi
if [ "$(state vpp)" = active ] && [ "$(state shoal)" != active ]; then ok vpp-service; else inside journalctl -u vpp -n 20 --no-pager; fail vpp-service "vpp $(state vpp), shoal $(state shoal)"; fi
expect vpp-group '^vpp$' inside stat -c %G /run/vpp/cli.sock
expect vppctl-finds-it '^vpp v26' inside vppctl show version

# --- Removed, then purged: what was there before, and nothing else.
inside rm -rf /etc/vpp
inside systemctl enable --quiet --now shoal
inside apt-get remove -y "${wanted[@]}" >"$work/remove.log" 2>&1 || { tail -n 20 "$work/remove.log"; fail remove "see above"; }
! inside pgrep -x shoal >/dev/null || fail remove "the router still runs"
[ -s "$root/etc/shoal/startup.conf" ] && [ -d "$root/var/lib/shoal" ] && ok remove-keeps-configuration || fail remove-keeps-configuration "it is gone"
inside apt-get purge -y "${wanted[@]}" >"$work/purge.log" 2>&1 || { tail -n 20 "$work/purge.log"; fail purge "see above"; }
left=$(files | grep -vE "$apt_leavings" | comm -13 "$work/before" - | head -n 10)
groups_left=$(cut -d: -f1 "$root/etc/group" | grep -E '^(shoal|vpp)$')
if [ -z "$left" ] && [ -z "$groups_left" ]; then ok purge; else fail purge "left: $left $groups_left"; fi
exit "$failed"
