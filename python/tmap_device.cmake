# SPDX-License-Identifier: Apache-2.0
# The headers of a Python package, for tmapConfig.cmake.
if(NOT TARGET tmap::device)
  add_library(tmap::device INTERFACE IMPORTED)
  target_include_directories(tmap::device INTERFACE ${PACKAGE_PREFIX_DIR}/include)
endif()
