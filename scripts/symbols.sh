#!/usr/bin/env bash
# symbols.sh PROGRAM...: moves names and lines of code out of programs into PROGRAM.debug beside them, where debuggers, perf
# and the router's own backtraces find them. Doing it again does nothing. Cargo keeps the whole program in its `deps` folder.
set -euo pipefail
for program in "$@"; do
  # Without the tool the program is larger, and otherwise the same.
  command -v objcopy >/dev/null || { echo "symbols: objcopy (binutils) is not installed: $program keeps its symbols"; exit 0; }
  objdump -h "$program" | grep -q ' \.debug_line ' || continue
  objcopy --only-keep-debug "$program" "$program.debug.new"
  chmod 644 "$program.debug.new"
  mv "$program.debug.new" "$program.debug"
  # Another file in the program's place: one that runs keeps what it has.
  objcopy --strip-all --add-gnu-debuglink="$program.debug" "$program" "$program.new"
  mv "$program.new" "$program"
done
