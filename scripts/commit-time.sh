#!/usr/bin/env bash
# commit-time.sh: prints the time that what is built from these sources has, in seconds since 1970: SOURCE_DATE_EPOCH, or the
# commit's, or that of debian/changelog where there is no commit.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || dpkg-parsechangelog -STimestamp)}"
