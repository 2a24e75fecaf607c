#!/usr/bin/env bash
# sbom.sh: writes target/sbom/PROGRAM.cdx.json, which list the libraries that each program is made of, with their licences
# (CycloneDX 1.5). cargo-cyclonedx makes them; it is installed below target/tools if it is not there.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/target/tools/bin:$PATH:$HOME/.cargo/bin"
CARGO_CYCLONEDX=0.5.9
if ! command -v cargo-cyclonedx >/dev/null; then
  echo "sbom: installing cargo-cyclonedx $CARGO_CYCLONEDX (two minutes)"
  CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    cargo install --quiet --locked --root target/tools --version "$CARGO_CYCLONEDX" cargo-cyclonedx
fi
SOURCE_DATE_EPOCH=$(scripts/commit-time.sh)
export SOURCE_DATE_EPOCH
# The tool leaves a file beside every Cargo.toml of the workspace.
leavings() { find bin core drivers lab mgmt net plugin xtask -name shoal-sbom.cdx.json -not -path '*/target/*' "$@"; }
trap 'leavings -delete' EXIT
rm -rf target/sbom
mkdir -p target/sbom
# One call for a workspace writes all of its packages' files; the folder's name on this machine is not in them.
make() { cargo cyclonedx -qq --format json --spec-version 1.5 --no-build-deps --override-filename shoal-sbom.cdx --manifest-path "$1"; }
keep() { sed "s|file://$PWD/|file:///usr/src/shoal/|g" "$1/shoal-sbom.cdx.json" >"target/sbom/$2.cdx.json"; }
make bin/shoal/Cargo.toml
keep bin/shoal shoal
keep bin/shoalctl shoalctl
keep lab/shoal_lab shoal-lab
if [ -e target/dpdk/dpdk_plugin.so ]; then
  make plugin/dpdk/Cargo.toml
  keep plugin/dpdk shoal-plugin-dpdk
fi
