#!/usr/bin/env bash
# image.sh: makes target/image/shoal.tar, a container image (an archive that docker and podman load) out of the packages in target/packages and of those of
# Debian that they need, with nothing else in it: no shell, no package manager. mmdebstrap unpacks, buildah packs.
# Two calls for the same packages of ours and of Debian make the same image. Needs root, as mmdebstrap and buildah do.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${OUT:=target/packages}" "${IMAGE:=target/image}"
say() { printf 'image: %s\n' "$*"; }
deb=$(find "$OUT" -maxdepth 1 -name 'shoal_*.deb' | head -n 1)
[ -n "$deb" ] || { say "there is no package in $OUT: run 'make deb' first"; exit 1; }
[ "$(id -u)" -eq 0 ] || { say "needs root (mmdebstrap, buildah)"; exit 1; }
SOURCE_DATE_EPOCH=$(scripts/commit-time.sh)
export SOURCE_DATE_EPOCH
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
mkdir -p "$IMAGE"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
say "unpacking Debian's libraries and $(basename "$deb")"
# What the programs link to; dpkg-shlibdeps wrote it into the package.
needs=$(dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/ *(.*//; s/|.*//; s/ //g' | grep -v systemd | paste -sd,)
mmdebstrap --quiet --variant=extract --include="$needs,base-files,netbase" "$suite" "$root/tree" >"$root/log" 2>&1 ||
  { tail -n 5 "$root/log"; say "mmdebstrap could not unpack Debian's packages"; exit 1; }
dpkg-deb -x "$deb" "$root/tree"
# Documents stay with the packages.
rm -rf "$root/tree"/usr/share/{doc,man,locale,lintian,bash-completion,zsh,fish,gcc,info} "$root/tree"/var/{cache,lib/apt,lib/dpkg,log}/* \
  "$root/tree"/usr/include
mkdir -p "$root/tree"/{proc,sys,dev,tmp,run/shoal,var/lib/shoal,var/log/shoal}
chmod 1777 "$root/tree/tmp"
echo 'root:x:0:0:root:/var/lib/shoal:/usr/bin/shoalctl' >"$root/tree/etc/passwd"
echo 'root:x:0:' >"$root/tree/etc/group"
# A group for the sockets would take one more capability (CAP_CHOWN); whatever runs in the container is root there.
sed -i 's/^  gid shoal$/  # gid shoal/' "$root/tree/etc/shoal/startup.conf"
find "$root/tree" -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0r touch -h -d "@$SOURCE_DATE_EPOCH"
# Docker's form has health checks, which that of the OCI has not.
export BUILDAH_FORMAT=docker
storage=(--root "$root/storage" --runroot "$root/run" --storage-driver vfs)
container=$(buildah "${storage[@]}" from scratch)
buildah "${storage[@]}" copy -q "$container" "$root/tree" / >/dev/null
buildah "${storage[@]}" config --entrypoint '["/usr/bin/shoal"]' --cmd '-c /etc/shoal/startup.conf' \
  --volume /var/lib/shoal --healthcheck 'CMD ["/usr/bin/shoalctl","show","version"]' \
  --stop-signal SIGTERM --label org.opencontainers.image.title=shoal \
  --label org.opencontainers.image.licenses=Apache-2.0 \
  --label "org.opencontainers.image.version=$(dpkg-deb -f "$deb" Version)" "$container"
rm -f "$IMAGE/shoal.tar"
buildah "${storage[@]}" commit -q --format docker --timestamp "$SOURCE_DATE_EPOCH" "$container" "docker-archive:$IMAGE/shoal.tar:localhost/shoal:latest" >/dev/null
say "$IMAGE/shoal.tar, $(du -h "$IMAGE/shoal.tar" | cut -f1)"
