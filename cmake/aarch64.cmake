# SPDX-License-Identifier: Apache-2.0
# A toolchain file that builds for aarch64 on x86-64. nvcc and the headers are those of this
# machine's CUDA toolkit. TMAP_AARCH64_CUDA is a folder that has the CUDA runtime of aarch64, in
# lib/libcudart_static.a. `make wheel_aarch64` fetches it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CUDA_HOST_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_PATH /usr/aarch64-linux-gnu/lib)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TMAP_AARCH64_CUDA)

# By itself nvcc looks for headers and libraries of aarch64, which the toolkit lacks.
find_path(tmap_cuda_include cuda_runtime_api.h PATHS $ENV{CUDA_PATH} $ENV{CUDA_HOME} /usr/local/cuda
  PATH_SUFFIXES include NO_DEFAULT_PATH)
set(CMAKE_CUDA_FLAGS_INIT
  "-isystem ${tmap_cuda_include} -isystem ${tmap_cuda_include}/cccl -L${TMAP_AARCH64_CUDA}/lib")
foreach(name tmap_cudart CUDA_cudart_static_LIBRARY)
  set(${name} ${TMAP_AARCH64_CUDA}/lib/libcudart_static.a CACHE FILEPATH "The CUDA runtime of aarch64")
endforeach()
