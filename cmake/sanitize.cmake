# SPDX-License-Identifier: Apache-2.0
set(TMAP_SANITIZE OFF CACHE STRING "Sanitizers of the host code: OFF, ON (address and undefined behaviour) or thread")
if(TMAP_SANITIZE STREQUAL "thread")
  set(tmap_sanitizers thread)
elseif(TMAP_SANITIZE)
  set(tmap_sanitizers address,undefined)
endif()
if(tmap_sanitizers)
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${tmap_sanitizers};-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  add_link_options("$<$<LINK_LANGUAGE:CXX,CUDA>:-fsanitize=${tmap_sanitizers}>")
endif()
