# HOMING_CCACHE_DIR=FOLDER: ccache keeps there what is compiled, so that the wheel that the tests build takes the objects
# of this build (tests/python/test_package.py). Without ccache, or with another launcher, everything is compiled anew.
set(HOMING_CCACHE_DIR "" CACHE PATH "where ccache, if there is one, keeps what is compiled")
find_program(HOMING_CCACHE NAMES ccache DOC "ccache")
foreach(language C CXX)
  if(HOMING_CCACHE_DIR AND HOMING_CCACHE AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
    # Files are named from the build folder, in debug information too, so that another folder beside it finds them.
    # It takes the compiler's own list of what was read, and reads a precompiled header once.
    set(CMAKE_${language}_COMPILER_LAUNCHER env CCACHE_DIR=${HOMING_CCACHE_DIR} CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 CCACHE_INODECACHE=1 CCACHE_SLOPPINESS=pch_defines,time_macros
      ${HOMING_CCACHE})
  endif()
endforeach()
