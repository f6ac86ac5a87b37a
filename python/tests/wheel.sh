#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the library of the wheel, makes the wheel, installs it into a fresh environment and runs
# the tests against what was installed: wheel.sh <python> <build folder> <version> <work folder>.
# Ends with 77 if this machine has no such environments, or no packages that make wheels.
set -euo pipefail
python=$1 build=$(realpath "$2") version=$3 work=$4
package=$(dirname "$(dirname "$(realpath "$0")")")
library=$build/portable/libtmap.so
unset TMAP_LIBRARY PYTHONPATH

rm -rf "$work"
mkdir -p "$work"
cd "$work"
if ! "$python" -m venv tools ||
   ! tools/bin/pip install --quiet --no-compile --no-deps --retries 1 --timeout 20 --requirement "$package/wheel_requirements.txt"; then
  echo "wheel: this machine has no venv, or neither the packages that make wheels nor a way to them"
  exit 77
fi
# The operators of PyTorch in C++ are in the wheel if the build knows PyTorch's headers.
kept() { sed --quiet "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
operators=
[ -z "$(kept TMAP_TORCH_ROOT)" ] || operators=$build/portable/libtmap_torch.so
cmake --build "$build" --target tmap_portable ${operators:+tmap_torch_portable}
bash "$package/make_wheel.sh" tools "$library" made "$operators"
wheel=$(echo made/tmap-"$version"-py3-none-manylinux_2_28_*.whl)
[ -f "$wheel" ] || { echo "the wheel is not one of version $version for every Python 3: $(ls made)" >&2; exit 1; }

# A library that was linked as usual needs newer systems.
strip -o usual.so "$build/libtmap.so"
if bash "$package/make_wheel.sh" tools usual.so refused >refused.txt 2>&1; then
  echo "the wheel of libtmap.so was not refused" >&2
  exit 1
fi
grep --quiet 'too-recent versioned symbols' refused.txt || { cat refused.txt >&2; exit 1; }

# No part of the CUDA toolkit, and no folder of this machine, is looked for when they are loaded.
# Operators find the library next to them, and PyTorch's in the process.
readelf --dynamic "$library" ${operators:+"$operators"} >dynamic.txt
if grep --extended-regexp 'RPATH|RUNPATH' dynamic.txt | grep --invert-match --fixed-strings '[$ORIGIN]' ||
   grep '(NEEDED)' dynamic.txt | grep --invert-match --extended-regexp \
     '\[(lib(c|dl|gcc_s|m|pthread|rt|stdc\+\+)|ld-linux-.*)\.so\.[0-9]\]|\[lib(tmap|torch_cpu)\.so\]'; then
  echo "the libraries of the wheel need these" >&2
  exit 1
fi

"$python" -m venv --without-pip environment
tools/bin/pip --python environment/bin/python install --quiet --no-deps --no-index "$wheel"
# NumPy, and what else the tests can use, is that of the Python given, which may be of a virtual
# environment itself.
"$python" -c 'import sys; print(*(path for path in sys.path if path.endswith("-packages")), sep="\n")' \
  >"$(echo environment/lib/python3*/site-packages)/others.pth"

clean="env --ignore-environment PATH=/usr/bin:/bin HOME=$work environment/bin/python"
installed=$($clean -c 'import tmap; print(tmap.__path__[0])')
case $installed in
  "$PWD"/environment/*) ;;
  *) echo "$installed was found, not what was installed" >&2; exit 1 ;;
esac
cmp "$library" "$installed/libtmap.so"
[ -z "$operators" ] || cmp "$operators" "$installed/libtmap_torch.so"
diff --recursive --exclude='libtmap*.so' --exclude=__pycache__ --exclude=LICENSE --exclude=copyright --exclude=include --exclude=cmake "$package/tmap" "$installed"
diff --recursive --exclude=__pycache__ "$package/tmap_autoload" "$installed/../tmap_autoload"
environment/bin/python -c 'from importlib.metadata import entry_points as found; found(group="torch.backends", name="tmap")["tmap"].load()'
diff --recursive "$package/../include" "$installed/include"
cmp "$package/../LICENSE" "$installed/LICENSE"
grep --quiet spdlog "$installed/copyright"
$clean "$package/tests/run.py" --installed

# Programs link the library of the wheel: in C, in C++, and with a kernel if there is an nvcc.
link="env --ignore-environment PATH=$PATH HOME=$work"
root=$($clean -c 'import tmap; print(tmap.cmake_prefix())')
toolkit=(-Dtmap_ROOT="$root" -DCMAKE_CXX_COMPILER="$(kept CMAKE_CXX_COMPILER)"
         -DCUDAToolkit_ROOT="$(dirname "$(kept tmap_cuda_include)")")
$link bash "$package/../tests/package/outside.sh" "$package/tests/wheel_user" "$PWD/user" all \
  "${toolkit[@]}" -Dversion="$version" >user.txt 2>&1 || { cat user.txt; exit 1; }
$link user/in_c
$link user/in_cxx
readelf --dynamic user/in_c user/in_cxx >linked.txt
[ "$(grep --count '(NEEDED).*\[libtmap\.so\]' linked.txt)" = 2 ] || { cat linked.txt; exit 1; } >&2
nvcc=$(kept CMAKE_CUDA_COMPILER)
if [ -n "$nvcc" ]; then
  $link bash "$package/../tests/package/outside.sh" "$package/../tests/package/cuda" "$PWD/kernel" all \
    "${toolkit[@]}" -DCMAKE_CUDA_COMPILER="$nvcc" >kernel.txt 2>&1 || { cat kernel.txt; exit 1; }
fi
cd /
rm -r "$work"
