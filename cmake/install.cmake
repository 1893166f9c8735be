# What `make install` and the wheel install. In the wheel (SKBUILD) everything lies in the Python package's own folder.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/homing)
set(fortran_dir ${CMAKE_INSTALL_INCLUDEDIR}/homing/fortran)

target_include_directories(homing INTERFACE
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS homing EXPORT homing-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS homing-costs RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/homing DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# The Fortran module: gfortran's homing.mod, and the source for every other compiler (and other versions of gfortran),
# which compile it beside their own programs.
if(TARGET homing_fortran)
  get_target_property(fortran_modules homing_fortran Fortran_MODULE_DIRECTORY)
  target_include_directories(homing_fortran INTERFACE
    $<BUILD_INTERFACE:${fortran_modules}> $<INSTALL_INTERFACE:${fortran_dir}>)
  install(TARGETS homing_fortran EXPORT homing-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${fortran_modules}/homing.mod ${HOMING_FORTRAN_SOURCES} DESTINATION ${fortran_dir})
endif()

install(EXPORT homing-targets NAMESPACE homing:: DESTINATION ${package_dir})
configure_package_config_file(cmake/homing-config.cmake.in ${generated}/homing-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${generated}/homing-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/homing-config.cmake ${generated}/homing-config-version.cmake DESTINATION ${package_dir})

# The prefix is written relative to the file, so that an installed tree may be moved.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
configure_file(cmake/homing.pc.in ${generated}/homing.pc @ONLY)
install(FILES ${generated}/homing.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What is installed and nothing else, for `make install`: neither the tests nor the programs.
add_custom_target(homing_installed)
foreach(target homing homing-costs homing_fortran homing_simulator homing_callbacks homing_callbacks_files homing_check
    homing_drop_in homing_counter_plugin homing_unprivileged homing_mark homing_share)
  if(TARGET ${target})
    add_dependencies(homing_installed ${target})
  endif()
endforeach()
