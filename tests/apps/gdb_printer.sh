#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that the gdb printer of apps/tmap/gdb shows maps of both types, and that the tool reads
# gdb's own dumps: gdb_printer.sh <tmap> <root> <cuda include>. Returns 77 without gdb.
set -euo pipefail
tool=$1 root=$2 cuda=$3
command -v gdb > /dev/null && gdb -batch -ex 'python import json' 2> /dev/null || { echo "there is no gdb with Python"; exit 77; }
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
"$tool" explain --type f16 --dims 64,100 --box 64,8 --swizzle 128 --address 0x7f0000001000 --out "$folder/map" > /dev/null
words=$("$tool" inspect --json "$folder/map" | sed 's/.*"words":\[\([^]]*\)\].*/\1/; s/"//g')
cat > "$folder/program.cpp" <<CODE
#include <cuda.h>
#include <tmap/tensor_map.hpp>
tmap::tensor_map ours{{$words}};
CUtensorMap drivers{{$words}};
tmap::tensor_map none{};
int main() { return ours.words[0] == drivers.opaque[0] && none.words[0] == 0 ? 0 : 1; }
CODE
"${CXX:-c++}" -std=c++17 -g -I"$root/include" -isystem "$cuda/cccl" -isystem "$cuda" "$folder/program.cpp" -o "$folder/program"

ask() {
  TMAP_TOOL=$tool gdb -nx -batch -iex 'set auto-load off' -iex "source $root/apps/tmap/gdb/tmap_gdb.py" -ex "$1" "$folder/program"
}
wrong=0
expect() {
  [[ "$2" == *"$1"* ]] || { printf 'wanted: %s\nfound:  %s\n' "$1" "$2" >&2; wrong=1; }
}
summary='tiled f16 [64, 100], box [64, 8], swizzle 128B at 0x7f0000001000 = {'
expect "$summary" "$(ask 'print ours')"
expect "$summary" "$(ask 'print drivers')"
expect 'oob_fill = zero' "$(ask 'print ours')"
expect 'no tensor map (' "$(ask 'print none')"

fields=$("$tool" inspect "$folder/map")
for command in 'x/16gx &ours' 'x/32wx &drivers' 'x/128xb &ours' 'print/rx ours' 'output/x ours.words'; do
  expect "$fields" "$(ask "$command" | "$tool" inspect - 2>&1)"
done
exit "$wrong"
