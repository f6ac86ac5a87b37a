# SPDX-License-Identifier: Apache-2.0
set(TMAP_SANITIZE OFF CACHE STRING "Sanitizers of the host code: OFF, ON (address and undefined behaviour) or thread")
if(TMAP_SANITIZE STREQUAL "thread")
  set(tmap_sanitizers thread)
elseif(TMAP_SANITIZE)
  set(tmap_sanitizers address,undefined)
endif()
if(tmap_sanitizers)
  # In instrumented code g++ 13 takes sound copies for ones out of bounds; the other builds keep
  # these warnings.
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>")
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${tmap_sanitizers};-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  # Tests ask the driver about numbers that its enumerations do not have.
  set_source_files_properties(lib/driver/raw_calls.cpp PROPERTIES COMPILE_OPTIONS -fno-sanitize=enum)
  add_link_options("$<$<LINK_LANGUAGE:CXX,CUDA>:-fsanitize=${tmap_sanitizers}>")
endif()
