#!/usr/bin/env bash
# Builds a GoVPP program with bindings generated from share/api, and runs it against the router.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:/usr/local/go/bin"
export SHOAL=${SHOAL:-target/release/shoal}
SHOAL=$(realpath "$SHOAL")
[ -x "$SHOAL" ] || { echo "FAIL govpp: $SHOAL is not there: make build"; exit 1; }
command -v go >/dev/null || { echo "FAIL govpp: there is no Go: make setup"; exit 1; }

# The bindings are rebuilt each time: they are what a user would generate from the files installed.
build=target/govpp
rm -rf "$build"
mkdir -p "$build"
cp tests/govpp/go.* tests/govpp/*.go "$build"
api=$(realpath share/api)
(
  cd "$build"
  go run go.fd.io/govpp/cmd/binapi-generator --no-source-path-info --import-prefix shoal.test/govpp/binapi \
    --input "$api" --output-dir binapi >generator.log 2>&1 || { echo "FAIL govpp generates its bindings"; cat generator.log; exit 1; }
  echo "ok govpp generates its bindings"
  # Every package registers its messages where it is imported.
  { echo 'package main'; for package in binapi/*/; do echo "import _ \"shoal.test/govpp/${package%/}\""; done; } >all.go
  go build -o govpp . || { echo "FAIL govpp builds"; exit 1; }
)

dir=$(mktemp -d /tmp/shoal-govpp-XXXXXX)
router=
end() {
  [ -z "$router" ] || { kill "$router" 2>/dev/null || true; wait "$router" 2>/dev/null || true; }
  rm -rf "$dir"
}
trap end EXIT
"$SHOAL" unix { nodaemon cli-listen "$dir/cli.sock" runtime-dir "$dir" } socksvr { socket-name "$dir/api.sock" } \
  statseg { socket-name "$dir/stats.sock" per-node-counters on } configuration { restore off } >"$dir/log" 2>&1 &
router=$!
timeout 60 "$build/govpp" "$dir/api.sock" "$dir/stats.sock" 2>"$dir/client" || { tail -n 20 "$dir/client" "$dir/log"; exit 1; }
