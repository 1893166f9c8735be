-- Lmod; for `make install PREFIX=/opt/homing/0.2.0`. `module load homing` then gives the command, its manual, the library,
-- and what CMake and pkg-config need.
local root = os.getenv("HOMING_ROOT") or "/opt/homing/0.2.0"
-- The folder of libraries has another name from one distribution to the next.
local lib = isFile(pathJoin(root, "lib64/pkgconfig/homing.pc")) and "lib64" or "lib"
help([[homing run -- ./a.out: sends memory pages of OpenMP programs to the NUMA nodes that use them]])
whatis("Name: homing")
whatis("Version: 0.2.0")
whatis("Description: NUMA page placement for unmodified OpenMP programs")
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, lib))
prepend_path("CMAKE_PREFIX_PATH", root)
prepend_path("PKG_CONFIG_PATH", pathJoin(root, lib, "pkgconfig"))
