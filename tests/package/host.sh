#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds host/ against an installed tmap and runs it: with CMake and both libraries, and with
# pkg-config alone. The toolkit that it sees has headers and libraries but no nvcc. Usage: host.sh
# <installed> <work folder> <CUDA headers> <CUDA libraries> <compiler> <version>
set -euo pipefail
installed=$1 work=$2 cuda_headers=$3 cuda_libraries=$4 compiler=$5 version=$6
sources=$(dirname "$(realpath "$0")")/host

rm -rf "$work"
mkdir -p "$work/toolkit"
ln -s "$cuda_headers" "$work/toolkit/include"
ln -s "$cuda_libraries" "$work/toolkit/lib64"
unset CUDACXX CUDA_PATH CUDA_HOME LD_LIBRARY_PATH
PATH=$(tr ':' '\n' <<<"$PATH" | while read -r folder; do [ -e "$folder/nvcc" ] || echo "$folder"; done | paste -sd:)
if command -v nvcc; then
  echo "an nvcc is still in the PATH" >&2
  exit 1
fi

cmake -S "$sources" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$installed" -DCUDAToolkit_ROOT="$work/toolkit" \
  -Dversion="$version" -Dnext_major="$((${version%%.*} + 1))"
grep -q "^tmap_cuda_include:PATH=$work/toolkit/include$" "$work/build/CMakeCache.txt"
cmake --build "$work/build"
"$work/build/with_tmap"
"$work/build/with_shared"

pc=$(dirname "$(find "$installed" -name tmap.pc)")
flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs "tmap >= $version" \
  --define-variable=cuda="$work/toolkit/include" --define-variable=libcudacxx="$work/toolkit/include/cccl")
# shellcheck disable=SC2086  # many flags
"$compiler" -std=c++17 -O1 "$sources/main.cpp" $flags -o "$work/by_pkg_config"
LD_LIBRARY_PATH=$(dirname "$(find "$installed" -name libtmap.so)") "$work/by_pkg_config"
