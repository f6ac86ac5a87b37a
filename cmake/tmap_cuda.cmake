# SPDX-License-Identifier: Apache-2.0
# tmap::cuda: what a program that uses tmap's host headers and library needs of the CUDA toolkit:
# its headers with libcu++, and the static runtime. Not FindCUDAToolkit, which wants an nvcc. Also
# installed, for tmapConfig.cmake.
find_path(tmap_cuda_include cuda_runtime_api.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} ${CUDAToolkit_ROOT} ENV CUDAToolkit_ROOT
        ENV CUDA_PATH ENV CUDA_HOME
  PATHS /usr/local/cuda
  PATH_SUFFIXES include)
# Since CUDA 13 the toolkit keeps libcu++ in a folder of its own. nvcc finds it by itself, g++ does
# not.
find_path(tmap_libcudacxx_include cuda/std/version HINTS ${tmap_cuda_include} PATH_SUFFIXES cccl)
find_library(tmap_cudart cudart_static HINTS ${tmap_cuda_include}/.. PATH_SUFFIXES lib64 lib)
mark_as_advanced(tmap_cuda_include tmap_libcudacxx_include tmap_cudart)

unset(tmap_cuda_missing)
set(tmap_cuda_version 0)
if(NOT tmap_cuda_include OR NOT tmap_libcudacxx_include OR NOT tmap_cudart)
  set(tmap_cuda_missing "the CUDA toolkit's headers (cuda_runtime_api.h, cuda/std/version) or libcudart_static.a were \
not found (CUDAToolkit_ROOT names the folder to look in)")
else()
  file(STRINGS ${tmap_cuda_include}/cuda_runtime_api.h tmap_cuda_version REGEX "^#define CUDART_VERSION +[0-9]+")
  string(REGEX REPLACE "[^0-9]" "" tmap_cuda_version "${tmap_cuda_version}")
  if(tmap_cuda_version LESS 13000)
    set(tmap_cuda_missing "${tmap_cuda_include} is of a CUDA toolkit older than 13.0")
  endif()
endif()

if(NOT tmap_cuda_missing AND NOT TARGET tmap::cuda)
  add_library(tmap::cuda_headers INTERFACE IMPORTED)
  target_include_directories(tmap::cuda_headers INTERFACE ${tmap_cuda_include} ${tmap_libcudacxx_include})
  add_library(tmap::cuda INTERFACE IMPORTED)
  target_link_libraries(tmap::cuda INTERFACE tmap::cuda_headers ${tmap_cudart} Threads::Threads ${CMAKE_DL_LIBS} rt)
endif()
