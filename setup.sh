#!/bin/sh
# Installs the Debian packages that building and testing need. Does nothing when they are all there.
# usage: ./setup.sh [build|test|fuzz|bench]   (each contains the one before; build is the default)
set -eu
build="g++ cmake ninja-build ccache pkg-config libboost1.81-dev libssl-dev rapidjson-dev libsimdjson-dev libre2-dev
  libcli11-dev libspdlog-dev libexpected-dev prometheus-cpp-dev libyaml-dev openssl python3"
test="$build libgtest-dev libgmock-dev libvalijson-dev clang-format-16 python3-jsonschema python3-yaml"
fuzz="$test clang-16 libclang-rt-16-dev"
case "${1:-build}" in
  build) wanted=$build ;;
  test | bench) wanted=$test ;;
  fuzz) wanted=$fuzz ;;
  *) echo "usage: ./setup.sh [build|test|fuzz|bench]" >&2; exit 2 ;;
esac
missing=""
for package in $wanted; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
echo "setup: installing$missing"
if ! command -v apt-get >/dev/null; then
  echo "setup: no apt-get here; install these packages (Debian 12 names) and run again:$missing" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo "setup: not root; run 'sudo ./setup.sh ${1:-build}' once, then go on" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# shellcheck disable=SC2086
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "setup: the installation failed; the whole log is $log" >&2
  exit 1
fi
rm -f "$log"
