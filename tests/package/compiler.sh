#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks an installed tmap with one more compiler: compiles all public host headers as C++17 and
# C++20, and builds and runs host/main.cpp with each library. Exits with 77 if the compiler is
# missing. Usage: compiler.sh <compiler> <installed> <work folder> <CUDA headers> <headers of
# libcu++> <CUDA libraries>
set -euo pipefail
compiler=$1 installed=$2 work=$3 cuda_headers=$4 libcudacxx=$5 cuda_libraries=$6
sources=$(dirname "$(realpath "$0")")/host
if ! command -v "$compiler" >/dev/null; then
  echo "no $compiler here"
  exit 77
fi

rm -rf "$work"
mkdir -p "$work"
(cd "$installed/include" && find tmap -name '*.hpp' -o -path '*tmap/tmap.h' | sort | sed 's/.*/#include <&>/') >"$work/headers.cpp"
[ "$(wc -l <"$work/headers.cpp")" -gt 20 ]
includes=(-I "$installed/include" -isystem "$cuda_headers" -isystem "$libcudacxx")
for standard in 17 20; do
  "$compiler" "-std=c++$standard" -Wall -Wextra -Wshadow -Wconversion -Werror -fsyntax-only "${includes[@]}" "$work/headers.cpp"
done

"$compiler" -std=c++17 -O1 -c "${includes[@]}" "$sources/main.cpp" -o "$work/main.o"
libraries=$(dirname "$(find "$installed" -name libtmap.a)")
"$compiler" "$work/main.o" "$libraries/libtmap.a" "$cuda_libraries/libcudart_static.a" -pthread -ldl -lrt -o "$work/with_tmap"
"$compiler" "$work/main.o" "$libraries/libtmap.so" "-Wl,-rpath,$libraries" "$cuda_libraries/libcudart_static.a" \
  -pthread -ldl -lrt -o "$work/with_shared"
"$work/with_tmap"
"$work/with_shared"
