# What `make install` and the wheel install. In the wheel (SKBUILD) everything lies in the Python package's own folder.
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
  # find_package() makes homing::homing_fortran of this, or of the source (homing-config.cmake.in).
  set_target_properties(homing_fortran PROPERTIES EXPORT_NAME homing_fortran_module)
  target_include_directories(homing_fortran INTERFACE
    $<BUILD_INTERFACE:${fortran_modules}> $<INSTALL_INTERFACE:${fortran_dir}>)
  install(TARGETS homing_fortran EXPORT homing-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${fortran_modules}/homing.mod ${HOMING_FORTRAN_SOURCES} DESTINATION ${fortran_dir})
endif()

string(REGEX MATCH "^[0-9]+" homing_fortran_version "${CMAKE_Fortran_COMPILER_VERSION}")
install(EXPORT homing-targets NAMESPACE homing:: DESTINATION ${package_dir})
configure_package_config_file(cmake/homing-config.cmake.in ${generated}/homing-config.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS fortran_dir)
write_basic_package_version_file(${generated}/homing-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${generated}/homing-config.cmake ${generated}/homing-config-version.cmake DESTINATION ${package_dir})

# The prefix is written relative to the file, so that an installed tree may be moved.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
set(fortran_cflags "")
set(fortran_libs "")
if(TARGET homing_fortran)
  set(fortran_cflags " -I\${fortrandir}")
  set(fortran_libs "-lhoming_fortran ")
endif()
configure_file(cmake/homing.pc.in ${generated}/homing.pc @ONLY)
install(FILES ${generated}/homing.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What is installed and nothing else, for `make install`: neither the tests nor the programs.
add_custom_target(homing_installed)
get_property(installed_benches GLOBAL PROPERTY HOMING_INSTALLED_BENCHES)
foreach(target ${installed_benches} homing homing-costs homing-launcher homing_fortran homing_simulator
    homing_callbacks homing_callbacks_files homing_check homing_drop_in homing_counter_plugin homing_region_marks homing_unprivileged homing_mark
    homing_share homing_page)
  if(TARGET ${target})
    add_dependencies(homing_installed ${target})
  endif()
endforeach()
# What `make test` needs: neither benchmarks that no test runs nor the programs of every compiler.
add_custom_target(homing_tested)
foreach(target homing_installed homing_unit_tests bench_replay apps_tested)
  if(TARGET ${target})
    add_dependencies(homing_tested ${target})
  endif()
endforeach()

# The command: the Python package, and in it what a source tree has elsewhere (homing/installation.py): the simulated
# machines, the sources of the programs that are measured, and set-up. In a wheel, pip does the rest.
set(python_dir ${CMAKE_INSTALL_LIBDIR}/homing/python)
set(homing_package_dir ${python_dir}/homing)
if(SKBUILD)
  set(homing_package_dir .)
else()
  # Of an older version nothing stays.
  install(CODE "file(REMOVE_RECURSE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${python_dir}\")")
  install(DIRECTORY homing/ DESTINATION ${homing_package_dir} PATTERN __pycache__ EXCLUDE PATTERN "*.pyc" EXCLUDE)
endif()
if(HOMING_BUILD_PAGE)
  install(FILES ${generated}/page/report.js ${generated}/page/report.css
          DESTINATION ${homing_package_dir}/report/html/page)
endif()
install(DIRECTORY simulator/machines DESTINATION ${homing_package_dir} FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY apps DESTINATION ${homing_package_dir}/share)
install(FILES benchmarks/CMakeLists.txt benchmarks/regions.c benchmarks/tasks.cpp
        DESTINATION ${homing_package_dir}/share/benchmarks)
install(FILES benchmarks/programs.cmake DESTINATION ${homing_package_dir}/share RENAME CMakeLists.txt)
if(SKBUILD)
  install(TARGETS homing-launcher RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR})
endif()
install(PROGRAMS tools/packages.sh DESTINATION ${homing_package_dir}/tools)
install(FILES tools/packages.tsv DESTINATION ${homing_package_dir}/tools)
if(NOT SKBUILD)
  option(HOMING_INSTALL_COMMAND "install the command homing with the Python packages that it needs" ON)
  if(HOMING_INSTALL_COMMAND)
    install(TARGETS homing-launcher RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(CODE "
      set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
      execute_process(COMMAND \"${Python3_EXECUTABLE}\" \"${CMAKE_CURRENT_SOURCE_DIR}/tools/install_command.py\"
        \"\${root}/${python_dir}\" \"\${root}/${CMAKE_INSTALL_BINDIR}\" RESULT_VARIABLE status)
      if(NOT status EQUAL 0)
        message(FATAL_ERROR \"the command homing was not installed: \"
          \"${Python3_EXECUTABLE} lacks Python packages? (-DHOMING_INSTALL_COMMAND=OFF leaves it out)\")
      endif()")
  endif()
endif()
