#!/usr/bin/env bash
# Builds the lab and runs it with the given arguments; without any it looks at the machine, measures every device that is there
# for about a minute, and writes a report.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
SHOAL_REVISION=$(git describe --always --dirty 2>/dev/null || true)
export SHOAL_REVISION
scripts/release.sh --quiet -p shoal-lab
exec scripts/in-namespace.sh target/release/shoal-lab "$@"
