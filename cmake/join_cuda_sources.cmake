# SPDX-License-Identifier: Apache-2.0
# tmap_join_cuda_sources(<variable> <target>): the .cu files of a list of sources become one that
# includes them all. Most of what nvcc does for a small kernel is to read headers, three times a
# file. CMake has UNITY_BUILD for CUDA since 3.31 only.
function(tmap_join_cuda_sources variable target)
  set(cuda ${${variable}})
  list(FILTER cuda INCLUDE REGEX "\\.cu$")
  list(LENGTH cuda count)
  if(count LESS 2)
    return()
  endif()
  set(others ${${variable}})
  list(REMOVE_ITEM others ${cuda})
  set(includes)
  foreach(source ${cuda})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    string(APPEND includes "#include \"${source}\"\n")
  endforeach()
  set(joined ${CMAKE_CURRENT_BINARY_DIR}/${target}_joined.cu)
  # file(GENERATE) would make Ninja compile it last, if the target is of another folder.
  file(CONFIGURE OUTPUT ${joined} CONTENT "${includes}" @ONLY)
  set(${variable} ${others} ${joined} PARENT_SCOPE)
endfunction()
