"""What users install: the wheel (command and libraries in one), and what `make install` installs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
BUILD = TREE / "build" / "release"
CONSUMER = TREE / "tests" / "package"


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user of the installed package would: nothing of this tree in the environment."""
    ours = ("PYTHON", "HOMING")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [os.fspath(word) for word in command],
        cwd=cwd,
        env={**inherited, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )


def succeed(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = run(*command, cwd=cwd, **environment)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


# --- the wheel ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without the network: with the build tools of the environment that the tests run in."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
    # Not optimised, in a build folder of its own: the library was built and tested once already.
    settings = {"build-dir": "build/wheel-test", "cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO": "-O0"}
    flags = [f"--config-settings={name}={value}" for name, value in settings.items()]
    offline = ("--no-index", "--no-deps", "--no-build-isolation")
    succeed(*pip, "wheel", *offline, *flags, "--wheel-dir", folder, TREE, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


def see_dependencies(python: Path, folder: Path) -> None:
    """Let a virtual environment see the packages of the one that the tests run in."""
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(succeed(python, "-c", where, cwd=folder).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that holds the wheel, and sees the dependencies of the one the tests run in."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    see_dependencies(python, folder)
    succeed(
        python,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--no-index",
        "--no-deps",
        wheel,
        cwd=folder,
    )
    return folder


def test_wheel_serves_every_python_of_this_platform(wheel: Path) -> None:
    name, _, python, abi, platform = wheel.stem.split("-")
    assert (name, python, abi) == ("homing", "py3", "none")
    assert platform.startswith("linux"), "it holds compiled libraries"


def test_wheel_holds_command_and_libraries(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for expected in (
        "homing/lib/libhoming.so",
        "homing/lib/homing/libhoming_counter_plugin.so",
        "homing/lib/homing/homing-mark",
        "homing/lib/homing/homing-share",
        "homing/bin/homing-costs",
        "homing/include/homing/homing.h",
        "homing/options.toml",
        "homing/cli.py",
        "homing/lab/__init__.py",
    ):
        assert names.count(expected) == 1, f"{expected} is there {names.count(expected)} times"
    assert not [name for name in names if name.startswith(("tests/", "src/", "build/"))]
    assert not [name for name in names if "__pycache__" in name]


def test_wheel_installs_the_command(installed: Path) -> None:
    printed = succeed(installed / "bin" / "homing", "--version", cwd=installed)
    version = succeed(
        installed / "bin" / "python", "-c", "import homing; print(homing.__version__)", cwd=installed
    )
    assert printed.split() == ["homing", version.strip()]


def test_installed_command_uses_its_own_library(installed: Path) -> None:
    code = "from homing.installation import find_library; print(find_library())"
    library = Path(succeed(installed / "bin" / "python", "-c", code, cwd=installed).strip())
    assert library.is_relative_to(installed)


@pytest.mark.parametrize("command, status", [("true", 0), ("false", 1)])
def test_installed_command_runs_programs(installed: Path, command: str, status: int) -> None:
    done = run(installed / "bin" / "homing", "run", "--", command, cwd=installed)
    assert (done.returncode, done.stdout) == (status, ""), done.stderr


COMPILERS = {
    "gcc": ("homing-gcc", "homing-g++", "homing-gfortran"),
    "llvm": ("homing-clang", "homing-clang++", "homing-flang"),
    "translate": ("homing-translate-cc", "", "homing-translate-fc"),
}


def as_compilers(installed: Path, which: str, cache: Path) -> dict[str, str]:
    """CC, CXX and FC for a build that knows nothing of homing. There is no translator for C++."""
    commands = zip(("CC", "CXX", "FC"), COMPILERS[which], strict=True)
    chosen = {name: os.fspath(installed / "bin" / word) if word else "g++" for name, word in commands}
    return {**chosen, "XDG_CACHE_HOME": os.fspath(cache)}


def check_built(installed: Path, which: str, folder: Path) -> None:
    for program in (folder / "sum_c", folder / "sum_cxx", folder / "sum_fortran"):
        assert succeed(program, cwd=folder, OMP_NUM_THREADS="3") == "sum 2147450880\n"
        if which == "translate":
            assert (b"homing_allocate" in program.read_bytes()) == (program.name != "sum_cxx")
            continue
        json_file = folder / f"{program.name}.json"
        options = ("--on", "sf15k", "--summary", "none", "--json", json_file)
        succeed(installed / "bin" / "homing", "run", *options, "--", program, cwd=folder, OMP_NUM_THREADS="3")
        counts = json.loads(json_file.read_text(encoding="utf-8"))["counts"]
        assert counts["run"]["total_misses"] > 1000


MAKEFILES = [pytest.param(which, "Unix Makefiles", marks=pytest.mark.full) for which in ("gcc", "llvm")]


@pytest.mark.parametrize(
    ("which", "generator"),
    [*((which, "Ninja") for which in COMPILERS), ("translate", "Unix Makefiles"), *MAKEFILES],
)
def test_one_word_commands_serve_cmake(installed: Path, which: str, generator: str, tmp_path: Path) -> None:
    if which == "llvm" and shutil.which("flang-new-19") is None:
        pytest.skip("flang-new-19 is not here")
    words = as_compilers(installed, which, tmp_path / "cache")
    build = tmp_path / "build"
    succeed("cmake", "-G", generator, "-S", CONSUMER / "compilers", "-B", build, cwd=tmp_path, **words)
    succeed("cmake", "--build", build, cwd=tmp_path, **words)
    check_built(installed, which, build)


@pytest.mark.parametrize("which", ["gcc", "translate"])
def test_one_word_commands_serve_make(installed: Path, which: str, tmp_path: Path) -> None:
    words = as_compilers(installed, which, tmp_path / "cache")
    makefile = CONSUMER / "compilers" / "Makefile"
    values = [f"{name}={words[name]}" for name in ("CC", "CXX", "FC")]
    succeed("make", "-f", makefile, f"VPATH={makefile.parent}", *values, cwd=tmp_path, **words)
    check_built(installed, which, tmp_path)


# --- the tree's own command ---------------------------------------------------------------------------------


def test_the_trees_commands_run_from_anywhere(tmp_path: Path) -> None:
    """What `make` leaves in .venv/bin, without an installation."""
    folder = tmp_path / "it's a venv"
    venv.create(folder)
    python = folder / "bin" / "python"
    see_dependencies(python, tmp_path)
    for _ in range(2):
        succeed(python, TREE / "tools" / "commands.py", cwd=tmp_path)
    stated = re.search(r"\[project.scripts\]\n(.*?)\n\n", (TREE / "pyproject.toml").read_text(), re.DOTALL)
    assert stated is not None
    names = {line.split("=")[0].strip(' "') for line in stated[1].splitlines()}
    assert {"homing", "homing-gcc"} <= names
    assert all(os.access(folder / "bin" / name, os.X_OK) for name in names)
    where = "import homing; print(homing.__file__)"
    assert Path(succeed(python, "-c", where, cwd=tmp_path).strip()).parent == TREE / "homing"
    assert "overhead" in succeed(folder / "bin" / "homing", "bench", cwd=tmp_path)
    (tmp_path / "homing").symlink_to(folder / "bin" / "homing")
    assert succeed(tmp_path / "homing", "--version", cwd=tmp_path).startswith("homing ")
    done = run(tmp_path / "homing", "run", "--summary", "none", "--", "sh", "-c", "exit 4", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (4, "")


# --- make install -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prefix")
    succeed("cmake", "--install", BUILD, "--prefix", folder, cwd=folder)
    return folder


def library_folder(prefix: Path) -> Path:
    (library,) = prefix.glob("lib*/**/libhoming.so")
    return library.parent


def test_installs_nothing_of_the_tests(prefix: Path) -> None:
    assert not [path for path in prefix.rglob("*") if "gtest" in path.name or "unit_tests" in path.name]


def test_make_install_builds_what_it_installs_and_no_more(tmp_path: Path) -> None:
    def ninja(*words: str) -> str:
        return succeed("ninja", "-C", BUILD, "-t", *words, cwd=tmp_path)

    made = {line.split(":")[0] for line in ninja("targets", "all").splitlines()}
    scripts = [path.read_text(encoding="utf-8") for path in BUILD.rglob("cmake_install.cmake")]
    named = {path for text in scripts for path in re.findall(r'"(/[^"]+)"', text)}
    installed = {os.path.relpath(path, BUILD) for path in named} & made
    assert "libhoming.so" in installed
    commands = ninja("commands", "homing_installed")
    assert not [path for path in installed if path not in commands]
    assert "homing_unit_tests" not in commands and "apps/" not in commands
    rule = re.search(r"^install:(.*?)##.*\n((?:\t.*\n)+)", (TREE / "Makefile").read_text(), re.MULTILINE)
    assert rule is not None and " build " not in rule[1] and "--target homing_installed" in rule[2]


def test_destdir_is_honoured(tmp_path: Path) -> None:
    succeed("cmake", "--install", BUILD, "--prefix", "/opt/homing", cwd=tmp_path, DESTDIR=os.fspath(tmp_path))
    assert library_folder(tmp_path / "opt" / "homing").is_dir()


def test_found_by_cmake(prefix: Path, tmp_path: Path) -> None:
    succeed(
        "cmake", "-G", "Ninja", "-S", CONSUMER, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path
    )
    succeed("cmake", "--build", tmp_path, cwd=tmp_path)
    for program in ("consumer_c", "consumer_cxx", "consumer_fortran"):
        assert "consumer: well" in succeed(tmp_path / program, cwd=tmp_path)


def pkg_config(prefix: Path, *questions: str) -> list[str]:
    folder = os.fspath(library_folder(prefix) / "pkgconfig")
    return succeed("pkg-config", *questions, "homing", cwd=prefix, PKG_CONFIG_PATH=folder).split()


def folders(words: list[str], flag: str) -> list[Path]:
    return [Path(word.removeprefix(flag)).resolve() for word in words if word.startswith(flag)]


def test_found_by_pkg_config(prefix: Path, tmp_path: Path) -> None:
    assert shutil.which("pkg-config"), "tools/packages.tsv lists it"
    words = pkg_config(prefix, "--cflags", "--libs")
    assert folders(words, "-I") == [prefix / "include"], "the installed headers, not those of this tree"
    program = tmp_path / "consumer"
    succeed("gcc", CONSUMER / "consumer.c", *words, "-o", program, cwd=tmp_path)
    assert "consumer: well" in succeed(
        program, cwd=tmp_path, LD_LIBRARY_PATH=os.fspath(library_folder(prefix))
    )


def test_installed_prefix_may_be_moved(prefix: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(prefix, moved, symlinks=True)
    assert folders(pkg_config(moved, "--libs"), "-L") == [library_folder(moved)]


def test_fortran_module_serves_gfortran_without_cmake(prefix: Path, tmp_path: Path) -> None:
    folder = pkg_config(prefix, "--variable=fortrandir")[0]
    words = pkg_config(prefix, "--libs")
    archive = library_folder(prefix) / "libhoming_fortran.a"
    program = tmp_path / "consumer"
    succeed(
        "gfortran", f"-I{folder}", CONSUMER / "consumer.f90", archive, *words, "-o", program, cwd=tmp_path
    )
    assert "consumer: well" in succeed(
        program, cwd=tmp_path, LD_LIBRARY_PATH=os.fspath(library_folder(prefix))
    )


@pytest.mark.parametrize("compiler", ["gfortran", "flang-new-19"])
def test_fortran_source_serves_any_compiler(prefix: Path, tmp_path: Path, compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    sources = sorted(Path(pkg_config(prefix, "--variable=fortrandir")[0]).glob("*.f90"))
    program = tmp_path / "consumer"
    words = pkg_config(prefix, "--libs")
    succeed(compiler, *sources, CONSUMER / "consumer.f90", *words, "-o", program, cwd=tmp_path)
    assert "consumer: well" in succeed(
        program, cwd=tmp_path, LD_LIBRARY_PATH=os.fspath(library_folder(prefix))
    )


# --- what is stated twice -----------------------------------------------------------------------------------


def test_one_version() -> None:
    """CMake, the Python project and the package state the version: the same one."""
    stated: Mapping[str, str] = {
        "CMakeLists.txt": "project(homing VERSION {} ",
        "pyproject.toml": 'version = "{}"',
        "homing/__init__.py": '__version__ = "{}"',
    }
    import homing

    for name, form in stated.items():
        assert form.format(homing.__version__) in (TREE / name).read_text(encoding="utf-8"), name
