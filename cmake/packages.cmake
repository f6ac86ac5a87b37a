# SPDX-License-Identifier: Apache-2.0
# Finds other projects' libraries, and leaves out what needs a missing one. Nothing is downloaded. A
# project that has tmap inside may bring the targets itself.

# tmap_find(<package> <target>): sets tmap_has_<package>.
macro(tmap_find package target)
  if(NOT TARGET ${target})
    find_package(${package} QUIET)
  endif()
  set(tmap_has_${package} OFF)
  if(TARGET ${target})
    set(tmap_has_${package} ON)
  endif()
endmacro()

tmap_find(fmt fmt::fmt-header-only)
tmap_find(spdlog spdlog::spdlog_header_only)
if(NOT tmap_has_fmt)
  set(tmap_has_spdlog OFF)  # it would include the stand-in
  message(STATUS "tmap: fmt was not found: tmap formats its texts by lib/stand_ins")
endif()
if(NOT tmap_has_spdlog)
  message(STATUS "tmap: spdlog was not found: log lines go to standard error without time and thread")
endif()

if(TMAP_BUILD_APPS OR TMAP_BUILD_BENCHMARKS OR TMAP_BUILD_TESTS)
  tmap_find(nlohmann_json nlohmann_json::nlohmann_json)
  tmap_find(CLI11 CLI11::CLI11)
  tmap_find(PNG PNG::PNG)
  tmap_find(JPEG JPEG::JPEG)
  set(tmap_missing_packages)
  foreach(package fmt spdlog nlohmann_json CLI11 PNG JPEG)
    if(NOT tmap_has_${package})
      list(APPEND tmap_missing_packages ${package})
    endif()
  endforeach()
  if(tmap_missing_packages)
    list(JOIN tmap_missing_packages ", " tmap_missing_packages)
    message(NOTICE "tmap: the tool, the benchmarks and the tests are left out: ${tmap_missing_packages} not found")
    set(TMAP_BUILD_APPS OFF)
    set(TMAP_BUILD_BENCHMARKS OFF)
    set(TMAP_BUILD_TESTS OFF)
  endif()
endif()
