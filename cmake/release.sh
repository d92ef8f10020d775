#!/usr/bin/env bash
# Builds build/release, guided by a profile: an instrumented build, a training run of it (tests/bench/train.py), the build
# that is shipped. The profile is made once and kept; stale parts of it are ignored by the compiler. On the admission path
# it is worth 12 to 20 % of all instructions (docs/adr/0005).
# usage: cmake/release.sh [TARGET...]     PROFILE=renew makes a new profile, PROFILE=none does without
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/release
jobs=${JOBS:-$(nproc)}
trained=$build/profile.trained
configure() { cmake --preset release -Wno-dev -DOSSA_PROFILE="$1" -DOSSA_TESTS="${OSSA_TESTS:-OFF}" >/dev/null; }

if [ "${PROFILE:-}" = none ]; then
  configure ""
else
  if [ "${PROFILE:-}" = renew ] || [ ! -e "$trained" ]; then
    echo "release: instrumented build, to learn from (once)"
    rm -rf "$trained" "$build/profile"
    configure make
    cmake --build "$build" -j "$jobs" --target ossa-webhook ossa-validator admit_bench admission_load
    echo "release: training"
    python3 tests/bench/train.py --bin "$build/bin"
    touch "$trained"
    echo "release: the build that counts"
  fi
  configure use
fi
cmake --build "$build" -j "$jobs" --target "$@"
