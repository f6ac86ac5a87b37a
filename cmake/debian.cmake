# SPDX-License-Identifier: Apache-2.0
# `cpack` makes the Debian package of what `cmake --install` installs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The maintainers of tmap <maintainers@users.noreply.a-seed-fb21f5a2.example>")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "The C++ and C libraries, their headers and the command-line tool.
 Programs that use them need the headers of the CUDA toolkit, 13.0 or newer.")
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Only what is built with tmap needs the toolkit; the library has the runtime inside and finds the
# driver when it runs.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS cuda-toolkit-13-0)

set(folder ${PROJECT_BINARY_DIR}/debian)
file(WRITE ${folder}/triggers "activate-noawait ldconfig\n")
file(WRITE ${folder}/shlibs "libtmap ${PROJECT_VERSION_MAJOR} tmap (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${folder}/triggers ${folder}/shlibs)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)
include(CPack)
