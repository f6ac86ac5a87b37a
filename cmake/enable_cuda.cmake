# SPDX-License-Identifier: Apache-2.0
# The language of the kernels, for builds that have them.
include(cmake/architectures.cmake)
if(NOT TMAP_BUILD_KERNELS)
  set(TMAP_ARCHITECTURES "")
  return()
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # CMake 3.25.1 does not know that nvcc 12 and newer speak C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
find_package(CUDAToolkit 13.0 REQUIRED)
