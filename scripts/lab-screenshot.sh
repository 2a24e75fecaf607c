#!/usr/bin/env bash
# Takes pictures of a report in a real browser: light, dark and narrow, to be looked at.
#   scripts/lab-screenshot.sh REPORT.html OUT.png    also writes OUT-dark.png and OUT-narrow.png
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: $0 REPORT.html OUT.png" >&2; exit 2; }
report=$(realpath -- "$1")
[ -f "$report" ] || { echo "$1: no such file" >&2; exit 2; }
out=$(realpath -m -- "$2")
base=${out%.png}

browser=
for name in chromium chromium-browser google-chrome; do
  command -v "$name" > /dev/null && { browser=$name; break; }
done
[ -n "$browser" ] || { echo "no browser: install Debian's package chromium" >&2; exit 6; }

profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT

# The height that the page needs, found by the browser itself. A frame of its own (--window-size) shows no more than that.
shoot() { # FILE WIDTH HEIGHT [OPTION...]
  local file=$1 width=$2 height=$3
  shift 3
  # As root there is no sandbox to drop into.
  local sandbox=()
  [ "$(id -u)" -ne 0 ] || sandbox=(--no-sandbox)
  timeout 120 "$browser" --headless=new --disable-gpu --hide-scrollbars --no-first-run --user-data-dir="$profile" \
    "${sandbox[@]}" --window-size="$width,$height" --virtual-time-budget=2000 "$@" \
    --screenshot="$file" "file://$report" > /dev/null 2> "$profile/log" ||
    { cat "$profile/log" >&2; exit 1; }
  [ -s "$file" ] || { cat "$profile/log" >&2; exit 1; }
  echo "$file"
}

height=${LAB_SCREENSHOT_HEIGHT:-9000}
shoot "$base.png" 1200 "$height"
shoot "$base-dark.png" 1200 "$height" --blink-settings=preferredColorScheme=0
shoot "$base-narrow.png" 500 "$height"
