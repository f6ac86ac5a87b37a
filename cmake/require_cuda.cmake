# SPDX-License-Identifier: Apache-2.0
# One clear sentence instead of CMake's own when there is no CUDA toolkit, before project() looks
# for a compiler.
find_program(tmap_nvcc nvcc HINTS $ENV{CUDACXX} $ENV{CUDA_PATH}/bin $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(NOT tmap_nvcc AND NOT DEFINED ENV{CUDACXX})
  message(FATAL_ERROR
    "tmap needs the CUDA toolkit 13.0 or newer and found no nvcc. Install it "
    "(https://developer.nvidia.com/cuda-downloads), or name the compiler: CUDACXX=/path/to/bin/nvcc.")
endif()
if(NOT DEFINED ENV{CUDACXX})
  set(CMAKE_CUDA_COMPILER ${tmap_nvcc} CACHE FILEPATH "The CUDA compiler")
endif()
# project() wants to know them, too.
include(${CMAKE_CURRENT_LIST_DIR}/architectures.cmake)
