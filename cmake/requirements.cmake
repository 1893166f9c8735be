# Headers without which nothing compiles: say so at once, with the package's name.
include(CheckIncludeFileCXX)
foreach(needed "toml++/toml.h=libtomlplusplus-dev")
  string(REPLACE "=" ";" needed ${needed})
  list(GET needed 0 header)
  list(GET needed 1 package)
  string(MAKE_C_IDENTIFIER HOMING_HAVE_${header} found)
  set(CMAKE_REQUIRED_QUIET ON)
  check_include_file_cxx(${header} ${found})
  if(NOT ${found})
    unset(${found} CACHE) # looked for again in the next run
    message(FATAL_ERROR "<${header}> was not found: install it (Debian package ${package}), or run `make`, which does")
  endif()
endforeach()
