#!/usr/bin/env bash
# Rewrites generated files. With --check it writes them elsewhere and fails if the committed ones differ.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
out=.
if [ "${1:-}" = --check ]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi

# write FILE COMMAND...
generated=()
write() {
  local file=$1
  shift
  mkdir -p "$out/$(dirname "$file")"
  "$@" >"$out/$file.new"
  mv "$out/$file.new" "$out/$file"
  generated+=("$file")
}

write docs/reference/cli.md cargo run --locked --quiet -p shoal -- --cli-reference
write docs/reference/api.md cargo run --locked --quiet -p shoal -- --api-reference
# The files by which clients of the binary API know its messages; what no module declares any more is removed.
rm -rf "$out/share/api"
cargo run --locked --quiet -p shoal -- --api-json "$out/share/api"
api_files() { (cd "$1" && find share/api -type f | sort); }
mapfile -t described < <(api_files "$out")
generated+=("${described[@]}")
write docs/reference/startup.md cargo run --locked --quiet -p shoal -- --startup-reference
write plugin/include/shoal_plugin.h cargo xtask plugin-header --print
# make_one PACKAGE KIND [PAGE]
make_one() { cargo run --locked --quiet -p "$1" --example documents -- "${@:2}"; }
# documents PACKAGE SECTION [PAGE...]: the program's man page, those of its subcommands, its completions.
documents() {
  local page
  write "share/man/man$2/$1.$2" make_one "$1" man
  for page in "${@:3}"; do
    write "share/man/man$2/$page.$2" make_one "$1" man "$page"
  done
  write "share/completions/$1.bash" make_one "$1" bash
  write "share/completions/_$1" make_one "$1" zsh
  write "share/completions/$1.fish" make_one "$1" fish
}
documents shoal 8
conf_page() { make_one shoal conf <"$out/docs/reference/startup.md"; }
write share/man/man5/shoal.conf.5 conf_page
for program in shoalctl shoal-lab; do
  mapfile -t pages < <(make_one "$program" pages)
  documents "$program" 1 "${pages[@]}"
done

if [ "$out" = . ]; then
  printf 'gen: wrote %s\n' "${generated[@]}"
  exit 0
fi
stale=0
diff <(api_files .) <(api_files "$out") || stale=1
for file in "${generated[@]}"; do
  diff -u "$file" "$out/$file" || stale=1
done
if [ "$stale" -ne 0 ]; then
  echo "gen: generated files are out of date; run 'make gen' and commit what it wrote"
  exit 1
fi
echo "gen: ${#generated[@]} generated files are up to date"
