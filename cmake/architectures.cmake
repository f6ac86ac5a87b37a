# SPDX-License-Identifier: Apache-2.0
# The GPUs that tmap's kernels are built for, in one place. What the code must know of a GPU is in
# include/tmap/device_limits.hpp.
set(tmap_known_architectures 90a 100a 103a 120a)  # the tests' build compiles the encoder for each
set(tmap_product_architectures 90a)               # the instructions of grouped products are Hopper's alone

# CMake's own variable has no effect here. Inside another project it is for that project's kernels.
if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR AND NOT "$CACHE{CMAKE_CUDA_ARCHITECTURES}" STREQUAL "")
  message(FATAL_ERROR
    "tmap: CMAKE_CUDA_ARCHITECTURES is \"$CACHE{CMAKE_CUDA_ARCHITECTURES}\", which tmap does not use. "
    "TMAP_ARCHITECTURES names the GPUs, of \"${tmap_known_architectures}\"; GPUs below 9.0 have no tensor maps.")
endif()

set(TMAP_ARCHITECTURES 90a CACHE STRING "GPUs that kernels are built for, of: ${tmap_known_architectures}")
set(tmap_unknown_architectures ${TMAP_ARCHITECTURES})
list(REMOVE_ITEM tmap_unknown_architectures ${tmap_known_architectures})
if(tmap_unknown_architectures OR NOT TMAP_ARCHITECTURES)
  message(FATAL_ERROR
    "tmap: TMAP_ARCHITECTURES is \"${TMAP_ARCHITECTURES}\"; it must be a list of one or more of "
    "\"${tmap_known_architectures}\" (cmake/architectures.cmake).")
endif()
# Machine code only: PTX of these targets, which alone have tensormap.replace, loads on no other
# GPU.
list(TRANSFORM TMAP_ARCHITECTURES APPEND -real OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)

# tmap_set_architectures(<target> <architecture>...): of kernels that are built for others than
# TMAP_ARCHITECTURES.
function(tmap_set_architectures target)
  list(TRANSFORM ARGN APPEND -real)
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${ARGN}")
endfunction()
