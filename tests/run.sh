#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every test of a build and closes with one line that counts them: tests/run.sh <build folder>
# [ctest arguments].
set -uo pipefail
build=$1
shift
report="$(realpath "$build")/tests.xml"
rm -f "$report"
ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$(nproc)" --output-junit "$report" \
  --progress "$@" 
code=$?
python3 "$(dirname "$0")/summary.py" "$report" || code=1
exit $code
