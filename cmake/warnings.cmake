# SPDX-License-Identifier: Apache-2.0
# Warnings are errors in our own code, for g++ and, through nvcc, for the host side of .cu files.
option(TMAP_WARNINGS_AS_ERRORS "Stop at the first warning in tmap's own code" ${PROJECT_IS_TOP_LEVEL})
set(host_warnings -Wall -Wextra -Wshadow -Wconversion -Wno-unknown-pragmas)
if(TMAP_WARNINGS_AS_ERRORS)
  list(APPEND host_warnings -Werror)
endif()
set(cuda_host_warnings -Wall -Wextra -Wno-unknown-pragmas)
list(JOIN cuda_host_warnings "," cuda_host_warnings_joined)

add_library(tmap_warnings INTERFACE)
target_compile_options(tmap_warnings INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${host_warnings}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${cuda_host_warnings_joined};--expt-relaxed-constexpr>"
  "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${TMAP_WARNINGS_AS_ERRORS}>>:-Werror=all-warnings>")
