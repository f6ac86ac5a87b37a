#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the package's tests with a wheel for aarch64 under qemu: aarch64.sh <environment> <wheel>
# <work folder>. The environment has the packages of wheel_requirements.txt. The Python that runs is
# Debian's of aarch64, unpacked into the work folder; nothing is installed on this machine.
set -euo pipefail
environment=$(realpath "$1") wheel=$(realpath "$2") work=$(realpath --canonicalize-missing "$3")
tests=$(dirname "$(realpath "$0")")

rm -rf "$work"
mkdir -p "$work"/{state/lists/partial,cache/archives/partial,packages,root}
cd "$work"
touch status
cat >apt.conf <<EOF
APT { Architecture "arm64"; Architectures "arm64"; Sandbox::User "root"; };
Dir { State "$PWD/state"; State::status "$PWD/status"; Cache "$PWD/cache"; };
EOF
export APT_CONFIG=$PWD/apt.conf
apt-get update -qq
version=$(apt-cache depends python3-minimal | sed -n 's/.*Depends: \(python3\.[0-9]*\)-minimal/\1/p')
(cd packages && apt-get download -qq "$version-minimal" "lib$version-minimal" "lib$version-stdlib" libbz2-1.0 libc6 \
  libcrypt1 libexpat1 libffi8 libgcc-s1 liblzma5 libstdc++6 libuuid1 zlib1g)
for package in packages/*.deb; do dpkg --extract "$package" root; done

# Python starts itself again in some tests, by the name that it was started with.
python=$PWD/root/usr/bin/$version
mv "$python" "$python.aarch64"
cat >"$python" <<EOF
#!/bin/sh
exec qemu-aarch64 -L $PWD/root -0 $python $python.aarch64 "\$@"
EOF
chmod +x "$python"

"$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target installed \
  --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --python-version "${version#python}" "numpy<2.3" "$wheel"
env --ignore-environment PATH=/usr/bin:/bin HOME="$PWD" PYTHONPATH="$PWD/installed" "$python" "$tests/run.py" --installed
cd /
rm -r "$work"
