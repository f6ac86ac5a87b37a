# SPDX-License-Identifier: Apache-2.0
option(TMAP_SANITIZE "Build host code with the address and undefined-behaviour sanitizers" OFF)
if(TMAP_SANITIZE)
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined;-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  add_link_options("$<$<LINK_LANGUAGE:CXX,CUDA>:-fsanitize=address,undefined>")
endif()
