#!/usr/bin/env bash
# stages.sh SECONDS ROW...: prints what each stage took, the largest first, beside what scripts/stages.tsv says it takes, and
# names those that have grown. A row is a file `NAME RESULT SECONDS PASSED FAILED SKIPPED`; SECONDS is the whole run's.
#
# No test fails for time: machines differ, and so do days. What is compared is scaled by a ruler, a piece of work that never
# changes, and a stage has grown if it takes a quarter and 15 seconds more than its line. STAGES_WRITE=1 writes the seconds of
# the stages that ran into the file and leaves the reasons.
set -euo pipefail
cd "$(dirname "$0")/.."
table=scripts/stages.tsv
whole=$1
shift
# The fastest of three, in milliseconds: a disturbed one is slower, never faster.
ruler=$(for _ in 1 2 3; do
  begun=$(date +%s%N)
  head -c 100M /dev/zero | sha256sum >/dev/null
  echo $((($(date +%s%N) - begun) / 1000000))
done | sort -n | head -n 1)
now=$(mktemp)
trap 'rm -f "$now"' EXIT
cat "$@" | sort -k3,3nr >"$now"
awk -v ruler="$ruler" -v whole="$whole" '
  function clock(s) { return sprintf("%d:%02d", s / 60, s % 60) }
  FNR == NR { if ($0 !~ /^#/ && NF) { split($0, f, "\t"); usual[f[1]] = f[2] } next }
  FNR == 1 { printf "\n%-12s %-8s %7s %7s %8s %8s %8s\n", "stage", "result", "time", "usual", "passed", "failed", "skipped" }
  {
    printf "%-12s %-8s %7s %7s %8d %8d %8d\n", $1, $2, clock($3), ($1 in usual) ? clock(usual[$1]) : "-", $4, $5, $6
    scaled = usual["ruler"] ? $3 * usual["ruler"] / ruler : $3
    if (($1 in usual) && scaled > usual[$1] * 1.25 + 15)
      grown = grown sprintf("GREW %s: %s here, as %s where its line was written, which says %s: find out why, or give the reason in its line\n",
        $1, clock($3), clock(scaled), clock(usual[$1]))
  }
  END { printf "%-12s %-8s %7s   (stages beside each other count once)\n%s", "all", "", clock(whole), grown }
' "$table" "$now"
[ "${STAGES_WRITE:-}" = 1 ] || exit 0
awk -v ruler="$ruler" -v whole="$whole" '
  BEGIN { FS = OFS = "\t" }
  FNR == NR { split($0, f, " "); took[f[1]] = f[3]; next }
  /^#/ || !NF { print; next }
  $1 == "ruler" { $2 = ruler }
  $1 == "all" { $2 = whole }
  $1 in took { $2 = took[$1]; delete took[$1] }
  { print }
  END { for (stage in took) print stage, took[stage], "" }
' "$now" "$table" >"$table.new"
mv "$table.new" "$table"
