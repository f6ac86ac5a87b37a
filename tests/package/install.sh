#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build afresh and holds the files against what is promised: install.sh <build folder> <installed>.
set -euo pipefail
build=$1 installed=$2
rm -rf "$installed"
cmake --install "$build" --prefix "$installed" >/dev/null

private=$(find "$installed/include" -type f ! -path "$installed/include/tmap/*" -o -type f ! -name '*.h' ! -name '*.hpp' ! -name '*.cuh')
[ -z "$private" ] || { echo "installed, but no public header: $private" >&2; exit 1; }
if grep -rl -e "$build" "$installed" --include='*.cmake' --include='*.pc'; then
  echo "these name the folder of the build" >&2
  exit 1
fi
for file in include/tmap/encode.hpp include/tmap/device/acquire.cuh libtmap.a libtmap.so cmake/tmap/tmapConfig.cmake \
            pkgconfig/tmap.pc bin/tmap doc/tmap/LICENSE; do
  [ -n "$(find "$installed" -path "*/$file")" ] || { echo "not installed: $file" >&2; exit 1; }
done
copyright=$(cat "$(find "$installed" -path '*/doc/tmap/copyright')")
for notice in 'Files: spdlog' 'Files: fmt' 'Files: nlohmann/json' 'Files: CLI11' 'Permission is hereby granted' \
              'Redistribution and use in source and binary forms'; do
  grep -q "$notice" <<<"$copyright" || { echo "no notice of what is compiled in: $notice" >&2; exit 1; }
done
"$installed/bin/tmap" --version
