#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian package of a build and checks its contents. Usage: deb.sh <build folder> <work
# folder>
set -euo pipefail
build=$1 work=$2
rm -rf "$work"
mkdir -p "$work"
# CPack builds everything first unless the named generator has no target `preinstall`. A test must
# not build anything.
(cd "$build" && cpack -G DEB -B "$work" -D CPACK_CMAKE_GENERATOR=Ninja)

package=$(find "$work" -maxdepth 1 -name '*.deb')
files=$(dpkg-deb -c "$package")
for file in usr/bin/tmap usr/include/tmap/encode.hpp libtmap.a 'libtmap.so -> libtmap.so.0' tmapConfig.cmake tmap.pc LICENSE copyright; do
  grep -q "/$file" <<<"$files" || { echo "not in the package: $file" >&2; exit 1; }
done
depends=$(dpkg-deb -f "$package" Depends)
echo "depends on $depends"
dpkg-deb --ctrl-tarfile "$package" | tar -xO ./triggers | grep -q "^activate-noawait ldconfig$"
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error "$package"
fi
grep -q "libc6" <<<"$depends"
if grep -qE "spdlog|cuda|nvidia" <<<"$depends"; then
  echo "the package depends on what is inside, or found at run time" >&2
  exit 1
fi

rm -r "$work"
