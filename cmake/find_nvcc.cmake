# SPDX-License-Identifier: Apache-2.0
# Decides whether this build has kernels, before CMake looks for their compiler. Only kernels need
# nvcc; all else needs the toolkit's headers and its static runtime (tmap_cuda.cmake).
find_program(tmap_nvcc nvcc HINTS $ENV{CUDA_PATH}/bin $ENV{CUDA_HOME}/bin PATHS /usr/local/cuda/bin)
set(tmap_has_nvcc OFF)
if(tmap_nvcc OR CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX})
  set(tmap_has_nvcc ON)
endif()

option(TMAP_BUILD_KERNELS "Build the kernels, which needs nvcc" ${tmap_has_nvcc})
option(TMAP_BUILD_PRODUCTS "Build the kernels of grouped products, which take longest" ON)
if(TMAP_BUILD_KERNELS AND NOT tmap_has_nvcc)
  message(FATAL_ERROR
    "tmap: TMAP_BUILD_KERNELS is ON, and there is no nvcc. Install the CUDA toolkit 13.0 or newer "
    "(https://developer.nvidia.com/cuda-downloads), or name the compiler: CUDACXX=/path/to/bin/nvcc.")
elseif(NOT tmap_has_nvcc)
  message(NOTICE
    "tmap: no nvcc was found, so this build has no kernels. Calls that need one fail with no_kernel_image. "
    "CUDACXX=/path/to/bin/nvcc names the compiler (docs/building.md).")
endif()
if(TMAP_BUILD_KERNELS AND tmap_nvcc AND NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  set(CMAKE_CUDA_COMPILER ${tmap_nvcc} CACHE FILEPATH "The CUDA compiler")
endif()
