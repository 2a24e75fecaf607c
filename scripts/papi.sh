#!/usr/bin/env bash
# Runs vpp_papi, scapy and vppcfg against the router. Arguments: modules of tests/papi; all of them without.
set -euo pipefail
cd "$(dirname "$0")/.."
env=target/papi
export SHOAL=${SHOAL:-target/release/shoal} SHOALCTL=${SHOALCTL:-target/release/shoalctl}
SHOAL=$(realpath "$SHOAL") SHOALCTL=$(realpath "$SHOALCTL")
[ -x "$SHOAL" ] && [ -x "$SHOALCTL" ] || { echo "FAIL papi: $SHOAL or $SHOALCTL is not there: make build"; exit 1; }
if ! cmp -s tests/papi/requirements.txt "$env/installed"; then
  python3 -m venv --clear "$env"
  "$env/bin/pip" install --quiet --disable-pip-version-check -r tests/papi/requirements.txt
  cp tests/papi/requirements.txt "$env/installed"
fi
# In a network namespace of its own, where that is possible: taps and loopbacks are made.
own=()
if [ "$(id -u)" -eq 0 ]; then own=(unshare -n sh -c 'ip link set lo up && exec "$@"' sh); fi
exec "${own[@]}" "$env/bin/python" -B tests/papi/run.py "$@"
