#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures tmap as a new user does, and checks what CMake chose and printed. Builds nothing.
# Usage: configure.sh <sources> <work folder> <compiler>
set -euo pipefail
sources=$1 work=$2 compiler=$3
unset CUDACXX CUDA_PATH CUDA_HOME CMAKE_BUILD_TYPE
PATH=$(tr ':' '\n' <<<"$PATH" | while read -r folder; do [ -e "$folder/nvcc" ] || echo "$folder"; done | paste -sd:)
rm -rf "$work"
mkdir -p "$work"

# configure <name> [CMake's arguments]: sets `printed`.
configure() {
  local name=$1
  shift
  echo "== $name"
  printed=$(cmake -S "$sources" -B "$work/$name" -DCMAKE_CXX_COMPILER="$compiler" -DTMAP_BUILD_TESTS=OFF \
    -DTMAP_BUILD_BENCHMARKS=OFF "$@" 2>&1)
}
# expect_cache <name> <line>
expect_cache() {
  grep -qx "$2" "$work/$1/CMakeCache.txt" || { echo "$1: the cache lacks $2" >&2; exit 1; }
}
# expect_printed <words>
expect_printed() {
  tr -s '\n ' ' ' <<<"$printed" | grep -qF "$1" || { echo "CMake did not print: $1"; echo "$printed"; exit 1; } >&2
}

configure no_nvcc -Dtmap_nvcc=
expect_printed "no nvcc was found, so this build has no kernels"
expect_cache no_nvcc "TMAP_BUILD_KERNELS:BOOL=OFF"
expect_printed "CMAKE_BUILD_TYPE is not set: Release is built"
expect_cache no_nvcc "CMAKE_BUILD_TYPE:STRING=Release"

if configure kernels_without_nvcc -Dtmap_nvcc= -DTMAP_BUILD_KERNELS=ON; then
  echo "kernels were configured without nvcc" >&2
  exit 1
fi
expect_printed "TMAP_BUILD_KERNELS is ON, and there is no nvcc"

configure no_packages -DTMAP_BUILD_KERNELS=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON \
  -DCMAKE_DISABLE_FIND_PACKAGE_spdlog=ON -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON
expect_printed "tmap: fmt was not found"
expect_printed "tmap: spdlog was not found"
expect_printed "are left out: fmt, spdlog, nlohmann_json not found"
expect_cache no_packages "CMAKE_BUILD_TYPE:STRING=Debug"

if [ -x /usr/local/cuda/bin/nvcc ]; then
  configure nvcc_in_its_usual_place
  expect_cache nvcc_in_its_usual_place "CMAKE_CUDA_COMPILER:[A-Z]*=/usr/local/cuda/bin/nvcc"
  expect_cache nvcc_in_its_usual_place "TMAP_BUILD_KERNELS:BOOL=ON"
fi
rm -r "$work"
