#!/bin/bash
# Fuzzes every target for SECONDS each, with address and undefined-behaviour sanitizers.
# usage: tests/fuzz/run.sh [SECONDS] [TARGET…]
# Finds are written to build/fuzz/crashes/<target>; new inputs are kept in build/fuzz/found/<target> for the next run.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(admission_review agent_parse schema_validate json_document kube_values uri)
build=${FUZZ_BUILD:-build/fuzz}
source=${FUZZ_SOURCE:-.}
sanitizers=address,undefined
command -v clang++-16 > /dev/null || { echo "fuzz: clang-16 is missing; run ./setup.sh fuzz" >&2; exit 1; }

# -w: clang warns about other things than GCC; GCC's warnings are the ones that count (preset dev).
cmake -S "$source" -B "$build" -G Ninja -Wno-dev -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=clang++-16 \
  -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1 -w -fsanitize-ignorelist=$PWD/tests/fuzz/sanitizer-ignore.txt" \
  -DOSSA_FUZZERS=ON -DOSSA_ASSERTIONS=ON -DOSSA_SANITIZE="fuzzer-no-link,$sanitizers" > "$build.log" 2>&1 ||
  { cat "$build.log"; exit 1; }
nice cmake --build "$build" --target ossa_fuzzers -j "${JOBS:-1}"
rm -rf "$build/seeds"
python3 tests/fuzz/make_seeds.py "$build/seeds"

export ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
failed=0
for target in "${targets[@]}"; do
  mkdir -p "$build/found/$target" "$build/crashes/$target"
  echo "fuzz: $target for $seconds s"
  log="$build/$target.log"
  if nice "$build/bin/fuzz_$target" -max_total_time="$seconds" -max_len=20000 -timeout=25 -rss_limit_mb=3000 \
    -artifact_prefix="$build/crashes/$target/" "$build/found/$target" "$build/seeds/$target" > "$log" 2>&1; then
    grep -E "^Done|^#[0-9]+.*DONE" "$log" | tail -n 1
  else
    failed=1
    tail -n 40 "$log"
    echo "fuzz: $target failed; input: $(grep -o 'Test unit written to .*' "$log" | sed 's/Test unit written to //' | tail -n 1)"
    echo "fuzz: run it again with: $build/bin/fuzz_$target <input>; then add it to tests/fuzz/corpus/$target"
  fi
done
exit $failed
