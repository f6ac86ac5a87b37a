#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures and builds a project outside tmap from scratch. Usage: outside.sh <sources> <build
# folder> "<target>..." [CMake's arguments]
set -euo pipefail
sources=$1 build=$2
read -ra targets <<<"$3"
shift 3
rm -rf "$build"
cmake -S "$sources" -B "$build" -DCMAKE_BUILD_TYPE=Release "$@"
cmake --build "$build" --target "${targets[@]}"
