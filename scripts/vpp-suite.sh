#!/usr/bin/env bash
# vpp-suite.sh [FILE...]: runs VPP's own tests (FILE as in `ls`: ip4, neighbor) against the router; without a name those of the list
# in tests/vpp_suite/passes.txt, of which each must pass.
#
# VPP_SUITE  the folder `test` of a VPP checkout (../shared/vpp-suite/test)      SHOAL    the router (target/release/shoal)
# JOBS       tests at once (2)      FILE_S   seconds for one file (600)          SAMPLE=1 what CI runs      WRITE=1 write the list
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${VPP_SUITE:-../shared/vpp-suite/test}
[ ! -e "$suite/test/run_tests.py" ] || suite=$suite/test
if [ ! -e "$suite/run_tests.py" ]; then
  echo "SKIP vpp-suite: no tests of VPP at $suite (VPP_SUITE=FOLDER names the folder 'test' of a VPP checkout)"
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "SKIP vpp-suite: VPP's tests need root"
  exit 0
fi
shoal=$(realpath "${SHOAL:-target/release/shoal}")
[ -x "$shoal" ] || { echo "FAIL vpp-suite: $shoal is not there: make build"; exit 1; }
env=$PWD/target/vpp-suite-env out=$PWD/target/vpp-suite here=$PWD/tests/vpp_suite
if ! cmp -s "$here/requirements.txt" "$env/installed"; then
  python3 -m venv --clear "$env"
  "$env/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  # The suite brings its own corrections of that Scapy.
  for patch in "$suite"/patches/scapy-2.4.5/*.patch; do
    patch --quiet --forward -p1 -d "$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <"$patch"
  done
  cp "$here/requirements.txt" "$env/installed"
fi
rm -rf "$out"
mkdir -p "$out/run" "$out/inst/vpp/bin" "$out/inst/vpp/share/vpp" "$out/suite"
cp -r "$suite" "$out/suite/test"
# A checkout by a program that makes no symbolic links has the link's target as the file's text.
if [ "$(head -c 64 "$out/suite/test/asfframework.py")" = asf/asfframework.py ]; then
  ln -sf asf/asfframework.py "$out/suite/test/asfframework.py"
fi
cp -r share/api "$out/inst/vpp/share/vpp/api"
# Nothing that an earlier router saved may be loaded.
printf '#!/bin/bash\nexec "%s" "$@" configuration { restore off }\n' "$shoal" >"$out/inst/vpp/bin/vpp"
chmod +x "$out/inst/vpp/bin/vpp"
# The suite leaves out a third of itself by the name of the system (Debian 12): show it another's.
sed 's/bookworm/jammy/g; s/^ID=debian/ID=ubuntu/; s/VERSION_ID="12"/VERSION_ID="22.04"/' /etc/os-release >"$out/os-release"
# shellcheck disable=SC2016
exec unshare -mn --propagation private bash -c '
  ip link set lo up
  for file in /etc/os-release /usr/lib/os-release; do mount --bind "$1" "$file" 2>/dev/null || true; done
  shift
  exec "$@"' bash "$out/os-release" "$env/bin/python" -B "$here/run.py" --suite "$out/suite/test" --out "$out" --jobs "${JOBS:-2}" \
  --seconds "${FILE_S:-600}" ${SAMPLE:+--sample} ${WRITE:+--write} "$@"
