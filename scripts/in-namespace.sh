#!/usr/bin/env bash
# Runs a command with power over a network: as root where it is, else as root of a user namespace of its own.
# Exit code 77 says that neither is possible here.
set -euo pipefail
if [ "$(id -u)" -eq 0 ]; then
  exec "$@"
fi
if ! unshare -Urmn true 2>/dev/null; then
  echo "This needs root, or unprivileged user namespaces, which this system does not allow: run it with sudo." >&2
  exit 77
fi
# `ip netns` wants to write below /run.
exec unshare -Urmn --propagation private sh -c 'mount -t tmpfs none /run && exec "$@"' sh "$@"
