#!/usr/bin/env bash
# What `make bench` runs, once everything is built: each writes build/bench/*.json and prints its table. All are run even
# when one misses its target; the exit code then says so.
set -uo pipefail
cd "$(dirname "$0")/../.."
failed=0
python3 tests/bench/admission.py "$@" || failed=1
python3 tests/bench/validator.py --bin build/release/bin/ossa-validator || failed=1
exit $failed
