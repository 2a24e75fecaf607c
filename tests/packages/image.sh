#!/usr/bin/env bash
# The container image: made of the package, run by podman with three capabilities and no other privilege, with two veth pairs
# moved into it; two hosts ping through it. Needs root, mmdebstrap, buildah, podman. PACKAGES is the folder of the packages.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
: "${PACKAGES:=target/packages-test/old}"
work=$PWD/target/packages-test/image
failed=0
ok() { echo "ok image/$1"; }
fail() { echo "FAIL image/$1: $2"; failed=1; }
skip() { echo "SKIP image: $1"; exit 0; }
[ "$(id -u)" -eq 0 ] || skip "needs root"
for tool in mmdebstrap buildah podman; do command -v "$tool" >/dev/null || skip "'$tool' is not installed (make setup)"; done
compgen -G "$PACKAGES/shoal_*.deb" >/dev/null || { fail packages "there is no package in $PACKAGES"; exit 1; }

a=shoal-image-a-$$ b=shoal-image-b-$$ name=shoal-image-$$
podman=(podman --root "$work/root" --runroot "$work/run" --storage-driver vfs --cgroup-manager cgroupfs --events-backend file)
stop() {
  "${podman[@]}" rm -f -t 0 "$name" >/dev/null 2>&1
  for ns in "$a" "$b"; do ip netns del "$ns" 2>/dev/null; done
  "${podman[@]}" system reset -f >/dev/null 2>&1
  rm -rf "$work"
}
trap stop EXIT
mkdir -p "$work"
if OUT=$PACKAGES IMAGE=$work scripts/image.sh >"$work/log" 2>&1 && "${podman[@]}" load -q -i "$work/shoal.tar" >>"$work/log" 2>&1; then
  ok make
else
  tail -n 10 "$work/log"
  fail make "see above"
  exit 1
fi

# The limits are those of this shell: a container in a container may not raise them. Older kernels' control groups want runc.
limits=(--ulimit "nofile=$(ulimit -n):$(ulimit -Hn)" --ulimit nproc=1000:1000)
run() {
  "${podman[@]}" "$@" run -d --name "$name" "${limits[@]}" --no-healthcheck --network none \
    --cap-drop ALL --cap-add NET_ADMIN,NET_RAW,IPC_LOCK localhost/shoal >"$work/run.log" 2>&1
}
run || { "${podman[@]}" rm -f "$name" >/dev/null 2>&1; run --runtime runc; } || skip "podman runs no container here: $(tail -n 1 "$work/run.log")"
ctl() { "${podman[@]}" exec "$name" /usr/bin/shoalctl "$@" 2>&1; }
until_up=$((SECONDS + 20))
until ctl show version >/dev/null || [ "$SECONDS" -ge "$until_up" ]; do sleep 0.2; done
out=$(ctl show version)
if [[ $out == *"vpp v26.06-shoal"* ]]; then ok start; else fail start "$out $("${podman[@]}" logs "$name" 2>&1 | tail -n 3)"; exit 1; fi
pid=$("${podman[@]}" inspect "$name" --format '{{.State.Pid}}')
powers=$(sed -n 's/^CapEff:\s*//p' "/proc/$pid/status")
# NET_ADMIN is 12, NET_RAW 13, IPC_LOCK 14.
if [ $((16#$powers)) -eq $((7 << 12)) ]; then ok three-capabilities; else fail three-capabilities "$powers"; fi

# host NAMESPACE PORT ADDRESS GATEWAY
host() {
  ip netns add "$1"
  ip -n "$1" link add eth0 type veth peer name "$2"
  ip -n "$1" link set "$2" netns "$pid"
  nsenter -t "$pid" -n ip link set "$2" up
  ip -n "$1" address add "$3" dev eth0
  ip -n "$1" link set eth0 up
  ip -n "$1" route add default via "$4"
  ctl create host-interface name "$2" >/dev/null
  ctl set interface ip address "host-$2" "$4/24"
  ctl set interface state "host-$2" up
}
host "$a" va 10.0.1.2/24 10.0.1.1
host "$b" vb 10.0.2.2/24 10.0.2.1
forwards() { ip netns exec "$a" ping -c 1 -W 1 10.0.2.2 >/dev/null 2>&1; }
until_up=$((SECONDS + 10))
until forwards || [ "$SECONDS" -ge "$until_up" ]; do :; done
if ip netns exec "$a" ping -c 20 -i 0.05 -W 1 10.0.2.2 >"$work/ping" 2>&1; then ok forwards; else fail forwards "$(tail -n 2 "$work/ping") $(ctl show interface)"; fi

# What is saved is there after a restart of the container, and it ends in time.
ctl loopback create-interface >/dev/null
ctl set interface ip address loop0 10.0.9.1/24
out=$(ctl write)
begun=$SECONDS
"${podman[@]}" stop -t 10 "$name" >/dev/null 2>&1
if [ $((SECONDS - begun)) -lt 8 ]; then ok stop; else fail stop "it took $((SECONDS - begun)) seconds"; fi
"${podman[@]}" start "$name" >/dev/null 2>&1
until_up=$((SECONDS + 20))
until [[ $(ctl show running-config) == *10.0.9.1/24* ]] || [ "$SECONDS" -ge "$until_up" ]; do sleep 0.2; done
if [[ $(ctl show running-config) == *10.0.9.1/24* ]]; then ok keeps-configuration; else fail keeps-configuration "$out; $(ctl show running-config | head -n 5)"; fi
exit "$failed"
