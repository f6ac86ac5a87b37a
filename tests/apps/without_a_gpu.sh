#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that each program returns 1 without a GPU and prints the reason in one line on standard
# error: without_a_gpu.sh <program>...
set -uo pipefail
wrong=0
for program in "$@"; do
  printed=$("$program" 2>&1 >/dev/null </dev/null)
  code=$?
  if [ "$code" -ne 1 ] || [[ "$printed" != "$(basename "$program"): needs a Hopper GPU"* ]] || [[ "$printed" == *$'\n'* ]]; then
    echo "$program: exit code $code, standard error: $printed"
    wrong=1
  fi
done
exit "$wrong"
