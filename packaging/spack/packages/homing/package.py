# Copyright the homing authors. SPDX-License-Identifier: BSD-3-Clause
# Spack's own names come by the star, as in all of its packages; Spack reads the lists.
# ruff: noqa: F403, F405, RUF012
from spack.package import *


class Homing(CMakePackage):
    """Sends memory pages of OpenMP programs to the NUMA nodes whose threads use them, while the
    unmodified program runs, and reports what it did."""

    homepage = "https://example.invalid/homing"
    # Until there is a public repository: spack develop, with the path of a clone (docs/howto/install.md).
    git = "https://example.invalid/homing.git"

    license("BSD-3-Clause")

    version("main", branch="main")
    version("0.2.0", tag="v0.2.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("tomlplusplus", type="build")
    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-pip", type="build")

    conflicts("platform=darwin", msg="homing needs Linux")

    generator("ninja")
    build_targets = ["homing_installed"]

    def setup_build_environment(self, env):
        env.set("PIP_DISABLE_PIP_VERSION_CHECK", "1")

    @run_before("cmake")
    def packages_of_python(self):
        """homing keeps the Python packages that it needs in a folder of its own."""
        python("-m", "venv", "--clear", join_path(self.stage.path, "venv"))
        pip = Executable(join_path(self.stage.path, "venv", "bin", "pip"))
        needed = join_path(self.stage.source_path, "requirements.txt")
        pip("install", "--no-deps", "--only-binary", ":all:", "-r", needed)

    def cmake_args(self):
        return [
            self.define("HOMING_BUILD_TESTS", False),
            self.define("Python3_EXECUTABLE", join_path(self.stage.path, "venv", "bin", "python")),
        ]

    def test_version(self):
        """the command starts"""
        Executable(self.prefix.bin.homing)("--version")
