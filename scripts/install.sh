#!/usr/bin/env bash
# Installs what was built, and builds nothing: the programs and their symbols, man pages and completions, the service and an
# example of the start-up file, which is never overwritten.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${PREFIX:=/usr/local}" "${DESTDIR:=}"
bin=$DESTDIR$PREFIX/bin unit=$DESTDIR$PREFIX/lib/systemd/system etc=$DESTDIR/etc/shoal doc=$DESTDIR$PREFIX/share/doc/shoal
for program in shoal shoalctl; do
  [ -x "target/release/$program" ] || { echo "install: there is no target/release/$program: run 'make build' first, as yourself"; exit 1; }
done
install -d "$bin" "$unit" "$etc" "$doc"
install -m 755 target/release/shoal target/release/shoalctl "$bin"
# Names and lines of the programs' code, by the number of their build, where debuggers look whatever PREFIX is.
for program in shoal shoalctl; do
  symbols=target/release/$program.debug
  id=$(readelf -n "target/release/$program" 2>/dev/null | sed -n 's/^ *Build ID: //p')
  if [ -s "$symbols" ] && [ -n "$id" ] && [ "$(readelf -n "$symbols" 2>/dev/null | sed -n 's/^ *Build ID: //p')" = "$id" ]; then
    install -D -m 644 "$symbols" "$DESTDIR/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
  fi
done
# The lab, if it was built; siitperf's names lead to it.
if [ -x target/release/shoal-lab ]; then
  install -m 755 target/release/shoal-lab "$bin"
  for name in siitperf-tp siitperf-lat siitperf-pdv; do ln -sf shoal-lab "$bin/$name"; done
  [ ! -x target/bench/release/shoal-lab-graph ] || install -m 755 target/bench/release/shoal-lab-graph "$bin"
else
  echo "install: without shoal-lab; 'cargo build --locked --release -p shoal-lab' builds it, then install again"
fi
# The DPDK plugin, if it was built (`make dpdk`): where the router looks, which is the same below every PREFIX.
if [ -f target/dpdk/dpdk_plugin.so ]; then
  install -D -m 644 target/dpdk/dpdk_plugin.so "$DESTDIR/usr/lib/shoal/plugins/dpdk_plugin.so"
fi
sed "s|@PREFIX@|$PREFIX|g" share/shoal.service >"$unit/shoal.service"
chmod 644 "$unit/shoal.service"
install -m 644 README.md CHANGELOG.md LICENSE docs/reference/*.md share/startup.conf "$doc"
# page FILE FOLDER NAME: installs under the name by which its reader looks for it.
page() {
  install -d "$DESTDIR$PREFIX/share/$2"
  install -m 644 "share/$1" "$DESTDIR$PREFIX/share/$2/$3"
}
# Where clients find what the API's messages are made of.
rm -rf "$DESTDIR$PREFIX/share/shoal/api"
for file in share/api/*/*.api.json; do
  page "${file#share/}" "shoal/$(dirname "${file#share/}")" "$(basename "$file")"
done
# For writers of plugins.
install -d "$DESTDIR$PREFIX/include" "$doc/examples/plugin/c" "$doc/examples/plugin/rust/src"
install -m 644 plugin/include/shoal_plugin.h "$DESTDIR$PREFIX/include/shoal_plugin.h"
install -m 644 plugin/examples/c/mark.c plugin/examples/c/Makefile "$doc/examples/plugin/c"
install -m 644 plugin/examples/rust/src/lib.rs "$doc/examples/plugin/rust/src"
page man/man1/shoalctl.1 man/man1 shoalctl.1
page man/man8/shoal.8 man/man8 shoal.8
page grafana/shoal.json shoal/grafana shoal.json
for program in shoal shoalctl; do
  page "completions/$program.bash" bash-completion/completions "$program"
  page "completions/_$program" zsh/site-functions "_$program"
  page "completions/$program.fish" fish/vendor_completions.d "$program.fish"
done
if [ -e "$etc/startup.conf" ]; then
  echo "install: $etc/startup.conf is there, left as it is"
else
  install -m 644 share/startup.conf "$etc/startup.conf"
fi
# VPP's names, for its clients and scripts: VPP_COMPAT=1. What is there is another's and stays.
if [ "${VPP_COMPAT:-0}" = 1 ]; then
  # name TARGET NAME: a link, unless somebody else has the name.
  name() {
    if [ -e "$2" ] && [ ! -L "$2" ]; then
      echo "install: $2 is there and is no link, left as it is"
    else
      install -d "$(dirname "$2")"
      ln -sfn "$1" "$2"
    fi
  }
  name shoal "$bin/vpp"
  name shoalctl "$bin/vppctl"
  # vpp_papi and VAT look for the API's files here.
  name "$PREFIX/share/shoal/api" "$DESTDIR/usr/share/vpp/api"
  # /run/vpp leads to the service's sockets.
  install -d "$DESTDIR$PREFIX/lib/tmpfiles.d"
  echo 'L /run/vpp - - - - shoal' >"$DESTDIR$PREFIX/lib/tmpfiles.d/shoal-vpp.conf"
  [ -n "$DESTDIR" ] || [ -e /run/vpp ] || [ -L /run/vpp ] || ln -s shoal /run/vpp
fi
echo "install: shoal and shoalctl are in $bin; systemctl enable --now shoal starts the service"
