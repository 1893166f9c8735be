# The programs of apps/ and benchmarks/ alone, against an installed homing: what `homing bench` builds where there is no
# source tree (homing/bench/places.py). Installed as share/CMakeLists.txt beside both folders.
cmake_minimum_required(VERSION 3.25)
project(homing_programs LANGUAGES C CXX Fortran)
find_package(homing REQUIRED)
add_library(homing ALIAS homing::homing)
get_target_property(homing_headers homing::homing INTERFACE_INCLUDE_DIRECTORIES)
add_subdirectory(apps)
add_subdirectory(benchmarks)
