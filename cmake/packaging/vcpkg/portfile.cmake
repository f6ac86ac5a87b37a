# SPDX-License-Identifier: Apache-2.0
# An overlay port, which builds the checkout that it is part of:
# vcpkg install tmap --overlay-ports=<checkout>/cmake/packaging/vcpkg
file(REAL_PATH ${CMAKE_CURRENT_LIST_DIR}/../../.. source)
set(VCPKG_BUILD_TYPE release)  # kernels take minutes to compile
vcpkg_cmake_configure(SOURCE_PATH ${source}
  OPTIONS -DTMAP_BUILD_APPS=OFF -DTMAP_BUILD_TESTS=OFF -DTMAP_BUILD_BENCHMARKS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/tmap)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST ${source}/LICENSE ${source}/cmake/copyright)
