# SPDX-License-Identifier: Apache-2.0
# tmap_portable: the shared library of the wheel. `make wheel` builds it.
find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_FOUND OR NOT TMAP_INSTALL OR TMAP_SANITIZE)
  return()
endif()
set(old_libraries ${PROJECT_BINARY_DIR}/old_libraries)
add_custom_command(OUTPUT ${old_libraries}/libc.so
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/cmake/old_libraries.py ${old_libraries} ${CMAKE_NM} ${CMAKE_CXX_COMPILER}
  DEPENDS ${PROJECT_SOURCE_DIR}/cmake/old_libraries.py VERBATIM)
add_custom_target(tmap_old_libraries DEPENDS ${old_libraries}/libc.so)

# tmap_make_portable(<library>): it is linked with symbols that the systems of the tag
# manylinux_2_28 have, and has no debug symbols.
function(tmap_make_portable library)
  add_dependencies(${library} tmap_old_libraries)
  target_sources(${library} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/portable.cpp)
  set_target_properties(${library} PROPERTIES
    EXCLUDE_FROM_ALL ON LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/portable)
  set_property(TARGET ${library} APPEND PROPERTY LINK_DEPENDS ${old_libraries}/libc.so)
  target_link_options(${library} PRIVATE -L${old_libraries} LINKER:--strip-all LINKER:--no-undefined)
  # The static libraries add the functions that the old ones lack.
  target_link_libraries(${library} PRIVATE -lpthread -lld -lstdc++ -l:libstdc++.a -lgcc -l:libc_nonshared.a)
endfunction()

# Its name has no version.
tmap_add_library(tmap_portable SHARED)
tmap_hide_symbols(tmap_portable)
set_target_properties(tmap_portable PROPERTIES OUTPUT_NAME tmap)
tmap_make_portable(tmap_portable)
