#!/usr/bin/env bash
# Installs what was built, and builds nothing: the programs and their symbols, man pages and completions, the service and an
# example of the start-up file, which is never overwritten. BUILT is the folder of the programs.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${PREFIX:=/usr/local}" "${DESTDIR:=}" "${BUILT:=target/release}"
bin=$DESTDIR$PREFIX/bin unit=$DESTDIR$PREFIX/lib/systemd/system etc=$DESTDIR/etc/shoal doc=$DESTDIR$PREFIX/share/doc/shoal
for program in shoal shoalctl; do
  [ -x "$BUILT/$program" ] || { echo "install: there is no $BUILT/$program: run 'make build' first, as yourself"; exit 1; }
done
install -d "$bin" "$unit" "$etc" "$doc"
install -m 755 "$BUILT/shoal" "$BUILT/shoalctl" "$bin"
# Names and lines of a program's code, by the number of its build, where debuggers look whatever PREFIX is.
symbols() {
  local id
  id=$(readelf -n "$1" 2>/dev/null | sed -n 's/^ *Build ID: //p')
  if [ -s "$1.debug" ] && [ -n "$id" ] && [ "$(readelf -n "$1.debug" 2>/dev/null | sed -n 's/^ *Build ID: //p')" = "$id" ]; then
    install -D -m 644 "$1.debug" "$DESTDIR/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
  fi
}
symbols "$BUILT/shoal"
symbols "$BUILT/shoalctl"
# The lab, if it was built; siitperf's names lead to it.
programs=(shoal shoalctl)
if [ -x "$BUILT/shoal-lab" ]; then
  programs+=(shoal-lab)
  install -m 755 "$BUILT/shoal-lab" "$bin"
  symbols "$BUILT/shoal-lab"
  for name in siitperf-tp siitperf-lat siitperf-pdv; do ln -sf shoal-lab "$bin/$name"; done
  [ ! -x target/bench/release/shoal-lab-graph ] || install -m 755 target/bench/release/shoal-lab-graph "$bin"
else
  echo "install: without shoal-lab; 'scripts/release.sh -p shoal-lab' builds it, then install again"
fi
# The DPDK plugin, if it was built (`make dpdk`): where the router looks, which is the same below every PREFIX.
if [ -f target/dpdk/dpdk_plugin.so ]; then
  install -D -m 644 target/dpdk/dpdk_plugin.so "$DESTDIR/usr/lib/shoal/plugins/dpdk_plugin.so"
  symbols target/dpdk/dpdk_plugin.so
fi
sed "s|@PREFIX@|$PREFIX|g" share/shoal.service >"$unit/shoal.service"
chmod 644 "$unit/shoal.service"
install -d "$doc/guide" "$doc/reference"
install -m 644 README.md LICENSE share/startup.conf "$doc"
install -m 644 docs/reference/*.md "$doc/reference"
install -m 644 docs/guide/*.md "$doc/guide"
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
page grafana/shoal.json shoal/grafana shoal.json
page prometheus/shoal.rules.yml shoal/prometheus shoal.rules.yml
for file in share/man/man*/*; do
  name=${file##*/}
  # Of what is not installed, no page.
  [[ $name != shoal-lab* || " ${programs[*]} " == *" shoal-lab "* ]] || continue
  page "${file#share/}" "$(dirname "${file#share/}")" "$name"
done
for program in "${programs[@]}"; do
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
  # name TARGET NAME: a link, unless another file has the name.
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
  # The same service by VPP's name, with VPP's start-up file.
  if [ -e "$unit/vpp.service" ] && ! grep -q shoal "$unit/vpp.service"; then
    echo "install: $unit/vpp.service is there and is not ours, left as it is"
  else
    sed -e 's/^Description=.*/Description=Shoal, in the place of VPP/' \
      -e "s|^ExecStart=.*|ExecStart=$PREFIX/bin/vpp -c /etc/vpp/startup.conf|" \
      -e 's/^RuntimeDirectory=shoal$/RuntimeDirectory=shoal:vpp/' -e 's/^LogsDirectory=shoal$/LogsDirectory=shoal vpp/' \
      -e '/^Wants=/a # Without that file shoal.service is the service; both at once would drive the same devices.\nConditionPathExists=/etc/vpp/startup.conf\nConflicts=shoal.service\nAfter=shoal.service' \
      "$unit/shoal.service" >"$unit/vpp.service"
  fi
  # While either service runs, /run/vpp leads to its sockets in /run/shoal.
  install -d "$unit/shoal.service.d"
  printf '%s\n' '[Service]' 'RuntimeDirectory=' 'RuntimeDirectory=shoal:vpp' >"$unit/shoal.service.d/vpp.conf"
fi
echo "install: shoal and shoalctl are in $bin; systemctl enable --now shoal starts the service"
