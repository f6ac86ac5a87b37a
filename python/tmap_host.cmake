# SPDX-License-Identifier: Apache-2.0
# The library of a Python package, for tmapConfig.cmake, which has found tmap::cuda. The targets are
# those of `cmake --install`. There is no static library, so tmap::tmap is the shared one.
if(NOT TARGET tmap::shared)
  add_library(tmap::shared SHARED IMPORTED)
  set_target_properties(tmap::shared PROPERTIES
    IMPORTED_LOCATION ${PACKAGE_PREFIX_DIR}/libtmap.so IMPORTED_SONAME libtmap.so)
  target_include_directories(tmap::shared INTERFACE ${PACKAGE_PREFIX_DIR}/include)
  target_link_libraries(tmap::shared INTERFACE tmap::cuda)
  target_compile_features(tmap::shared INTERFACE cxx_std_17)
  add_library(tmap::tmap ALIAS tmap::shared)
endif()
