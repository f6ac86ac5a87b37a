# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: headers, both libraries, the tool, tmapConfig.cmake, tmap.pc. All of it may be
# moved elsewhere as a whole.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(tmap_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tmap)

install(DIRECTORY include/tmap TYPE INCLUDE)
install(FILES LICENSE cmake/copyright TYPE DOC)
install(TARGETS tmap tmap_shared EXPORT tmap_host INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tmap_device EXPORT tmap_device INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tmap_host NAMESPACE tmap:: DESTINATION ${tmap_cmake_folder})
install(EXPORT tmap_device NAMESPACE tmap:: DESTINATION ${tmap_cmake_folder})
if(TMAP_BUILD_APPS)
  install(TARGETS tmap_tool)
  set(tmap_texts ${PROJECT_BINARY_DIR}/apps/tmap/generated)
  install(FILES ${tmap_texts}/man/tmap.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${tmap_texts}/bash/tmap DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${tmap_texts}/zsh/_tmap DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${tmap_texts}/fish/tmap.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  install(FILES apps/tmap/gdb/tmap_gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/tmap)
endif()
if(TMAP_BUILD_APPS AND TMAP_BUILD_BENCHMARKS)
  # For `tmap bench gemm`, when asked for by this component's name: it needs cuBLAS, which no
  # package of ours brings.
  install(TARGETS grouped_gemm_bench DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/tmap
          COMPONENT tmap_benchmarks EXCLUDE_FROM_ALL)
  set_target_properties(grouped_gemm_bench PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)  # to the toolkit's cuBLAS
endif()

configure_package_config_file(cmake/tmapConfig.cmake.in ${PROJECT_BINARY_DIR}/tmapConfig.cmake
  INSTALL_DESTINATION ${tmap_cmake_folder} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tmapConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES cmake/tmap_cuda.cmake ${PROJECT_BINARY_DIR}/tmapConfig.cmake ${PROJECT_BINARY_DIR}/tmapConfigVersion.cmake
  DESTINATION ${tmap_cmake_folder})

file(RELATIVE_PATH tmap_prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
set(tmap_pc_definitions)
if(TMAP_CHECK_HAZARDS)
  set(tmap_pc_definitions " -DTMAP_CHECK_HAZARDS")
endif()
configure_file(cmake/tmap.pc.in ${PROJECT_BINARY_DIR}/tmap.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tmap.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

include(cmake/debian.cmake)
