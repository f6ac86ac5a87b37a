#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the wheel around a library that is built, installs it into a fresh environment and runs the
# tests against what was installed: wheel.sh <python> <library> <version> <work folder>. Ends with
# 77 where there is no such environment to be had, or no scikit-build-core.
set -euo pipefail
python=$1 library=$(realpath "$2") version=$3 work=$4
package=$(dirname "$(dirname "$(realpath "$0")")")
unset TMAP_LIBRARY PYTHONPATH

rm -rf "$work"
mkdir -p "$work"
cd "$work"
if ! "$python" -m venv environment ||
   ! environment/bin/pip install --quiet --retries 1 --timeout 20 'scikit-build-core>=0.10'; then
  echo "wheel: this machine has no venv, or neither scikit-build-core nor a way to it"
  exit 77
fi
environment/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir . --config-settings=cmake.define.TMAP_LIBRARY="$library" "$package"
wheel=$(find . -maxdepth 1 -name "tmap-$version-py3-none-linux_*.whl")
[ -n "$wheel" ] || { echo "the wheel is not one of version $version for every Python 3: $(ls -- *.whl)" >&2; exit 1; }
environment/bin/pip install --quiet --no-deps --no-index "$wheel"
# NumPy, and what else the tests can use, is that of the Python given, which may be of a virtual
# environment itself.
"$python" -c 'import sys; print(*(path for path in sys.path if path.endswith("-packages")), sep="\n")' \
  >"$(echo environment/lib/python3*/site-packages)/others.pth"

installed=$(environment/bin/python -c 'import tmap; print(tmap.__path__[0])')
case $installed in
  "$PWD"/environment/*) ;;
  *) echo "$installed was found, not what was installed" >&2; exit 1 ;;
esac
cmp "$library" "$installed/libtmap.so"
diff --recursive --exclude=libtmap.so --exclude=__pycache__ --exclude=LICENSE --exclude=copyright --exclude=include "$package/tmap" "$installed"
diff --recursive "$package/../include" "$installed/include"
cmp "$package/../LICENSE" "$installed/LICENSE"
grep --quiet spdlog "$installed/copyright"
environment/bin/python "$package/tests/run.py" --installed
cd /
rm -r "$work"
