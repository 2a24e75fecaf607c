#!/usr/bin/env bash
# The lab's guard against regressions, as the last stage of `make check`: gates, clocks a packet, what arrives at the highest
# load, of what is built now; with `--base PROGRAM|FOLDER` against another build. Arguments are those of `suite ci`.
#
# Fails for what is wrong and for what surely is slower than the base. A machine that may not or cannot measure is told, and is
# no failure: 6 and 77 say that nothing could run, 5 that it was too busy for figures that can be trusted.
set -uo pipefail
cd "$(dirname "$0")/.."
scripts/bench.sh --version >/dev/null || echo "SKIP replay: its program could not be built"
scripts/lab.sh suite ci --plain "$@"
code=$?
case $code in
  5) echo "SKIP guard: gates hold, but this machine was too busy for figures that can be trusted" ;;
  6 | 77) echo "SKIP guard: nothing of it can run here" ;;
  0) echo "ok guard" ;;
  *)
    echo "FAIL guard: suite ci ended with $code"
    exit "$code"
    ;;
esac
