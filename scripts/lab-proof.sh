#!/usr/bin/env bash
# Proves that the lab measures right, with what is too slow for `make test-all`: the tests marked slow, rates over a real memif pair,
# and our MLRsearch beside its authors' library. Reports tests as `ok NAME`, `FAIL NAME` and `SKIP NAME: reason`.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
env=target/lab-proof failed=0
# proof NAME COMMAND...
proof() {
  local name=$1
  shift
  printf '== %s: %s\n' "$name" "$*"
  if "$@"; then echo "ok $name"; else echo "FAIL $name"; failed=1; fi
}
proof acceptance cargo test --locked --release -p shoal-lab --test acceptance -- --include-ignored --nocapture --test-threads 1
proof engine cargo test --locked --release -p shoal-lab-engine
if [ -x "$env/bin/python" ] || { python3 -m venv "$env" && "$env/bin/pip" install --quiet --disable-pip-version-check MLRsearch==1.2.1; }; then
  MLRSEARCH_PYTHON=$(realpath "$env/bin")/python
  export MLRSEARCH_PYTHON
  proof mlrsearch cargo test --locked --release -p shoal-lab-measure --test proofs mlr -- --nocapture
else
  echo "SKIP mlrsearch: the package MLRsearch cannot be had"
fi
exit "$failed"
