#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails and prints the files that `make format` would change.
set -euo pipefail
git ls-files '*.hpp' '*.cpp' '*.cuh' '*.cu' '*.h' | xargs clang-format --dry-run -Werror
echo "format: clean"
