#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian/Ubuntu packages tmap needs. Asks the compiler and the PATH what is there, not
# the package manager, so that a machine which has them from elsewhere (or has no network) is left
# alone. Further packages named on the command line, as command:package, are wanted too.
set -euo pipefail

headers="
spdlog/spdlog.h:libspdlog-dev
fmt/format.h:libfmt-dev
nlohmann/json.hpp:nlohmann-json3-dev
CLI/CLI.hpp:libcli11-dev
png.h:libpng-dev
jpeglib.h:libjpeg-dev
gtest/gtest.h:libgtest-dev
gmock/gmock.h:libgmock-dev
"
commands="g++:g++ cmake:cmake python3:python3 pkg-config:pkg-config $*"

missing=()
for entry in $commands; do
  command -v "${entry%%:*}" >/dev/null || missing+=("${entry##*:}")
done
for entry in $headers; do
  if ! command -v g++ >/dev/null ||
     ! printf '#if !__has_include(<%s>)\n#error missing\n#endif\n' "${entry%%:*}" |
       g++ -std=c++17 -x c++ -fsyntax-only - 2>/dev/null; then
    missing+=("${entry##*:}")
  fi
done
# Modules of any Python that the tests would find (python/tests/CMakeLists.txt).
if ! python3 -c 'import ensurepip, numpy' 2>/dev/null && ! /usr/bin/python3 -c 'import ensurepip, numpy' 2>/dev/null; then
  missing+=(python3-numpy python3-venv)
fi

if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
echo "tmap: missing packages: ${missing[*]}"
if ! command -v apt-get >/dev/null; then
  echo "tmap: this is no Debian or Ubuntu system; install them by hand, then run make again." >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
