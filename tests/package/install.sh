#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build into an empty folder and compares the files with the documented list. Usage:
# install.sh <build folder> <installed>
set -euo pipefail
build=$1 installed=$2
unset DESTDIR  # the caller may have set it, which would redirect the installation
rm -rf "$installed"
cmake --install "$build" --prefix "$installed" >/dev/null

private=$(find "$installed/include" -type f ! -path "$installed/include/tmap/*" -o -type f ! -name '*.h' ! -name '*.hpp' ! -name '*.cuh')
[ -z "$private" ] || { echo "installed, but no public header: $private" >&2; exit 1; }
diff --recursive "$(dirname "$(realpath "$0")")/../../include/tmap" "$installed/include/tmap"
if grep -rl -e "$build" "$installed" --include='*.cmake' --include='*.pc'; then
  echo "these name the folder of the build" >&2
  exit 1
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
must_not_name_this_machine() {
  local held
  held=$(strings -d "$1" | grep -F -e "$build" -e "$root/" || true)
  [ -z "$held" ] || { echo "$1 holds a path of the machine that built it: $held" >&2; exit 1; }
}
for file in bin/tmap libtmap.so; do
  must_not_name_this_machine "$(find -L "$installed" -path "*/$file" -type f | head -1)"
done
for file in include/tmap/encode.hpp include/tmap/device/acquire.cuh libtmap.a libtmap.so cmake/tmap/tmapConfig.cmake \
            pkgconfig/tmap.pc bin/tmap doc/tmap/LICENSE man/man1/tmap.1 bash-completion/completions/tmap \
            zsh/site-functions/_tmap fish/vendor_completions.d/tmap.fish tmap/tmap_gdb.py; do
  [ -n "$(find "$installed" -path "*/$file")" ] || { echo "not installed: $file" >&2; exit 1; }
done
copyright=$(cat "$(find "$installed" -path '*/doc/tmap/copyright')")
for notice in 'Files: spdlog' 'Files: fmt' 'Files: nlohmann/json' 'Files: CLI11' 'Permission is hereby granted' \
              'Redistribution and use in source and binary forms'; do
  grep -q "$notice" <<<"$copyright" || { echo "no notice of what is compiled in: $notice" >&2; exit 1; }
done
"$installed/bin/tmap" --version

# The benchmark is installed only on request; without it, the tool names the component to install.
libexec=$(dirname "$installed/bin")/libexec/tmap
[ ! -e "$libexec" ] || { echo "installed, but not asked for: $libexec" >&2; exit 1; }
if printed=$("$installed/bin/tmap" bench gemm --shapes 2>&1) || [[ "$printed" != *"--component tmap_benchmarks"* ]]; then
  echo "without the benchmark the tool prints: $printed" >&2
  exit 1
fi
if [ -x "$build/apps/bench/gemm/grouped_gemm_bench" ]; then
  cmake --install "$build" --prefix "$installed" --component tmap_benchmarks >/dev/null
  "$installed/bin/tmap" bench gemm --help | grep -q -e --no-plans
  must_not_name_this_machine "$libexec/grouped_gemm_bench"
  rm -r "$libexec"
fi
