"""What users install: the wheel (command and libraries in one), and what `make install` installs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.compilers import why_not
from tests.patience import PATIENCE

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
        timeout=PATIENCE,
    )


def succeed(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = run(*command, cwd=cwd, **environment)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


# --- the wheel ----------------------------------------------------------------------------------------------


def compiled_already() -> dict[str, str]:
    """Settings with which a build takes from ccache what the tree's own build compiled (cmake/ccache.cmake).
    Where that one did without, everything is compiled again, not optimised: it was tested once already."""
    rules = (BUILD / "CMakeFiles" / "rules.ninja").read_text(encoding="utf-8")
    if "CCACHE_DIR=" not in rules:
        return {"cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO": "-O0"}
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    values = dict(re.findall(r"^(\w+):\w+=(.*)$", cache, re.MULTILINE))
    same = ("HOMING_CCACHE_DIR", "CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER")
    # What is compiled with other flags is another object: a wheel's warnings are no errors.
    return {
        **{f"cmake.define.{name}": values[name] for name in same},
        "cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR": "ON",
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without the network: with the build tools of the environment that the tests run in."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
    settings = {"build-dir": "build/wheel-test", **compiled_already()}
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
    venv.create(folder)
    python = folder / "bin" / "python"
    see_dependencies(python, folder)
    succeed(
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",  # a pip of its own takes longer than all that is installed
        python,
        "install",
        "--no-index",
        "--no-deps",
        "--no-compile",
        wheel,
        cwd=folder,
    )
    return folder


def test_wheel_serves_every_python_of_this_platform(wheel: Path) -> None:
    name, _, python, abi, platform = wheel.stem.split("-")
    assert (name, python, abi) == ("homing", "py3", "none")
    assert platform.startswith("manylinux_2_"), "it holds compiled libraries"


def test_wheel_says_which_c_library_it_needs(wheel: Path, tmp_path: Path) -> None:
    """The loader would refuse the library on an older one, and pip does not know."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    files = (path for path in tmp_path.rglob("*") if path.is_file())
    binaries = [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]
    assert len(binaries) > 5
    linked = [path for path in binaries if path.suffix != ".o"]
    # objdump fails for what is linked statically, which needs none.
    symbols = "".join(run("objdump", "-T", path, cwd=tmp_path).stdout for path in linked)
    needed = max(int(minor) for minor in re.findall(r"\(?GLIBC_2\.(\d+)", symbols))
    assert f"manylinux_2_{needed}_" in wheel.name
    tags = next(tmp_path.glob("*.dist-info/WHEEL")).read_text(encoding="utf-8")
    assert re.findall("^Tag: (.*)$", tags, re.MULTILINE) == [wheel.stem.split("-", 2)[2]]


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
        "homing/report/html/page/report.js",
        "homing/report/html/page/report.css",
        "homing/bench/learner_of_0_1_0.json",
        "homing/cli.py",
        "homing/share/apps/nas/cg.f90",
        "homing/tools/packages.sh",
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


# --- every subcommand, where there is no source tree --------------------------------------------------------

#: Words of the command, and what it says; in this order in one folder, with ./laplace.c and ./jacobi.c.
CALLS = {
    "cc": ("cc gcc -O1 -g -fopenmp laplace.c -o laplace", ""),
    "run": ("run --on sf15k --record r.homing -- ./laplace 64 3", "sum 100"),
    "report": ("report r.homing", "laplace"),
    "doctor": ("doctor", "kernel"),
    "machine": ("machine", "sf15k"),
    "translate": ("translate jacobi.c -I . --to spmd -o translated", ""),
    "lab": ("lab --setup", "everything is there"),
    "bench": ("bench", "overhead"),
}


@pytest.mark.parametrize("way", ["wheel", pytest.param("prefix", marks=pytest.mark.full)])
def test_every_subcommand_works_without_the_source_tree(
    way: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    root: Path = request.getfixturevalue("installed" if way == "wheel" else "prefix")
    for source in (TREE / "examples" / "laplace.c", TREE / "apps" / "chapman" / "jacobi.c"):
        shutil.copy(source, tmp_path)
    for header in (TREE / "apps" / "common").glob("*.h"):
        shutil.copy(header, tmp_path)
    from homing.cli import COMMANDS

    assert set(CALLS) == set(COMMANDS)
    homing, more = root / "bin" / "homing", {"XDG_CACHE_HOME": os.fspath(tmp_path), "OMP_NUM_THREADS": "2"}
    # The lab's kernel lies where `make` put it.
    from homing.paths import cache_base

    for name, (words, said) in CALLS.items():
        helped = succeed(homing, name, "--help", cwd=tmp_path, COLUMNS="200") if name != "cc" else ""
        assert name == "cc" or f"homing {name}" in helped
        place = {"HOMING_CACHE": cache_base(), "HOMING_SETUP": os.fspath(tmp_path)} if name == "lab" else {}
        done = run(homing, *words.split(), cwd=tmp_path, **more, **place)
        assert done.returncode == 0, f"{name}: {done.stdout}\n{done.stderr}"
        assert said in done.stdout + done.stderr, f"{name}: {done.stdout}\n{done.stderr}"
    assert (tmp_path / "translated" / "jacobi.c").exists()
    where = succeed(homing, "run", "--summary", "none", "--", "sh", "-c", "echo $LD_PRELOAD", cwd=tmp_path)
    assert Path(where.strip().split(":")[0]).is_relative_to(root)


@pytest.mark.full  # it builds oneTBB's templates: 20 s
def test_installed_bench_builds_the_programs_that_it_measures(installed: Path, tmp_path: Path) -> None:
    if reason := why_not("clang++-19"):
        pytest.skip(reason)
    words = ("bench", "tasks", "--only", "throughput.1")
    more = {"XDG_CACHE_HOME": os.fspath(tmp_path / "cache")}
    done = run(installed / "bin" / "homing", *words, cwd=tmp_path, **more)
    assert done.returncode in (0, 1), done.stderr  # 1: this machine was not quiet
    assert "building tasks_gcc" in done.stderr
    assert json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))["rows"]


def test_installed_bench_says_what_is_missing(installed: Path, tmp_path: Path) -> None:
    words = ("bench", "tasks", "--only", "throughput.1")
    place = {"XDG_CACHE_HOME": os.fspath(tmp_path / "cache"), "PATH": "/nowhere"}
    done = run(installed / "bin" / "homing", *words, cwd=tmp_path, **place)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "needs cmake: pip install cmake ninja" in done.stderr


COMPILERS = {
    "gcc": ("homing-gcc", "homing-g++", "homing-gfortran"),
    "llvm": ("homing-clang", "homing-clang++", "homing-flang"),
    "translate": ("homing-translate-cc", "homing-translate-cxx", "homing-translate-fc"),
}


def as_compilers(installed: Path, which: str, cache: Path) -> dict[str, str]:
    """CC, CXX and FC for a build that knows nothing of homing."""
    commands = zip(("CC", "CXX", "FC"), COMPILERS[which], strict=True)
    chosen = {name: os.fspath(installed / "bin" / word) for name, word in commands}
    # Of LLVM's, those that were asked about (tests/compilers.py): `clang` may be one without a runtime.
    ours = {"HOMING_CLANG": "clang-19", "HOMING_CLANGXX": "clang++-19", "HOMING_FLANG": "flang-new-19"}
    return {**chosen, **ours, "XDG_CACHE_HOME": os.fspath(cache)}


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


#: gcc's by Ninja, and by a Makefile (below), in `make test`; the other pairs in `make test-all`.
PAIRS = [
    ("gcc", "Ninja"),
    *(pytest.param(which, "Ninja", marks=pytest.mark.full) for which in ("llvm", "translate")),
    *(pytest.param(which, "Unix Makefiles", marks=pytest.mark.full) for which in COMPILERS),
]


@pytest.mark.parametrize(("which", "generator"), PAIRS)
def test_one_word_commands_serve_cmake(installed: Path, which: str, generator: str, tmp_path: Path) -> None:
    words = as_compilers(installed, which, tmp_path / "cache")
    build = tmp_path / "build"
    succeed("cmake", "-G", generator, "-S", CONSUMER / "compilers", "-B", build, cwd=tmp_path, **words)
    succeed("cmake", "--build", build, cwd=tmp_path, **words)
    check_built(installed, which, build)


@pytest.mark.parametrize("which", ["gcc", pytest.param("translate", marks=pytest.mark.full)])
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
    assert "homing-gcc" in names
    assert all(os.access(folder / "bin" / name, os.X_OK) for name in names | {"homing"})
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
    """Staged, as packages are made: nothing in it may depend on where it lies."""
    stage = tmp_path_factory.mktemp("stage")
    words = ("cmake", "--install", BUILD, "--strip", "--prefix", "/opt/homing")
    succeed(*words, cwd=stage, DESTDIR=os.fspath(stage))
    return stage / "opt" / "homing"


def test_everything_is_installed_below_the_prefix(tmp_path: Path) -> None:
    """Of a fresh configuration: what CMake's cache holds of an earlier one must not help."""
    options = [f"-DHOMING_BUILD_{part}=OFF" for part in ("APPS", "TESTS")]
    succeed("cmake", "-G", "Ninja", "-S", TREE, "-B", tmp_path, *options, cwd=tmp_path)
    scripts = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("cmake_install.cmake"))
    places = re.findall(r'DESTINATION "([^"]*)"', scripts)
    assert len(places) > 10
    assert not [place for place in places if not place.startswith("${CMAKE_INSTALL_PREFIX}/")]


def test_installed_command_needs_nothing_of_the_tree(prefix: Path, tmp_path: Path) -> None:
    """The clone may be deleted, the prefix moved, and the user's PYTHONPATH does not matter."""
    texts = [path for path in prefix.rglob("*") if path.suffix in (".py", ".cmake", ".pc", ".sh", "")]
    texts = [path for path in texts if path.is_file() and path.read_bytes()[:4] != b"\x7fELF"]
    assert prefix / "bin" / "homing-gcc" in texts
    assert os.fsencode(TREE) not in (prefix / "bin" / "homing").read_bytes()
    assert not [path for path in texts if os.fsencode(TREE) in path.read_bytes()]
    for library in prefix.rglob("lib*.so"):
        assert "RUNPATH" not in succeed("readelf", "-d", library, cwd=tmp_path)
    (tmp_path / "homing").symlink_to(prefix / "bin" / "homing")
    words = ("run", "--summary", "none", "--", "sh", "-c", "exit 4")
    assert run(tmp_path / "homing", *words, cwd=tmp_path, PYTHONPATH=os.fspath(TREE)).returncode == 4


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
    # The page's files are named by their folder.
    page = os.path.join("generated", "page")
    assert page in commands
    assert not [path for path in installed if path not in commands and os.path.dirname(path) != page]
    assert "homing_unit_tests" not in commands and "apps/" not in commands
    rule = re.search(r"^install:(.*?)##.*\n((?:\t.*\n)+)", (TREE / "Makefile").read_text(), re.MULTILINE)
    assert rule is not None and " build " not in rule[1] and "--target homing_installed" in rule[2]
    assert "umask 022" in rule[2], "what root installs is for others, too"


def test_destdir_is_honoured(prefix: Path) -> None:
    assert [path.name for path in prefix.parents[1].iterdir()] == ["opt"]
    assert library_folder(prefix).is_dir()


FORTRAN = ["gfortran", "flang-new-19"]


@pytest.mark.parametrize("compiler", FORTRAN)
def test_found_by_cmake(prefix: Path, tmp_path: Path, compiler: str) -> None:
    """By C, C++ of any standard, and Fortran of the compiler that made the module or another."""
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_Fortran_COMPILER={compiler}"]
    succeed("cmake", "-G", "Ninja", "-S", CONSUMER, "-B", tmp_path, *options, cwd=tmp_path)
    programs = ["consumer_fortran"]
    if compiler == FORTRAN[0]:  # the others are the same for each
        programs += ["consumer_c", "consumer_cxx", "consumer_tasks"]
    succeed("cmake", "--build", tmp_path, "--target", *programs, cwd=tmp_path)
    for program in programs:
        assert "consumer: well" in succeed(tmp_path / program, cwd=tmp_path)


@pytest.mark.parametrize(
    ("languages", "version", "works"),
    [("C", "0.1", True), ("C CXX", "0.2", True), ("C", "0.99", False), ("C", "1", False)],
)
def test_versions_that_cmake_takes(
    prefix: Path, tmp_path: Path, languages: str, version: str, works: bool
) -> None:
    """Also for projects without C++ or Fortran. A release serves what was written for an earlier one."""
    text = f"cmake_minimum_required(VERSION 3.20)\nproject(one LANGUAGES {languages})\n"
    text += f"find_package(homing {version} REQUIRED)\nadd_executable(one {CONSUMER / 'consumer.c'})\n"
    text += "target_link_libraries(one PRIVATE homing::homing)\n"
    (tmp_path / "CMakeLists.txt").write_text(text, encoding="utf-8")
    done = run("cmake", "-G", "Ninja", "-S", ".", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path)
    assert (done.returncode == 0) == works, done.stderr
    if works:
        succeed("cmake", "--build", ".", cwd=tmp_path)
        assert "consumer: well" in succeed(tmp_path / "one", cwd=tmp_path)


def test_library_has_a_version(prefix: Path, tmp_path: Path) -> None:
    """The loader's name of the library, and versions of the functions that programs call; what stands for
    other libraries' functions has none, and so serves every program."""
    library = library_folder(prefix) / "libhoming.so"
    assert "soname: [libhoming.so.0]" in succeed("readelf", "-d", library, cwd=tmp_path)
    assert library.resolve().name == "libhoming.so.0.2.0"
    symbols = succeed("nm", "-D", "--defined-only", library, cwd=tmp_path).split("\n")
    exported = dict.fromkeys(line.split()[2] for line in symbols if len(line.split()) == 3)
    ours = {one for one in exported if one.startswith(("homing", "upmlib"))}
    header = (TREE / "include" / "homing" / "homing.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"^HOMING_API [^(]*?\*?(\w+)\(", header, re.MULTILINE))
    assert len(declared) > 25
    assert {one.split("@")[0] for one in ours} >= declared
    assert not [one for one in ours if not re.search(r"@@HOMING_0\.\d+$", one)]
    assert "homing_version@@HOMING_0.2" in ours and "homing_watch@@HOMING_0.1" in ours
    others = set(exported) - ours - {"HOMING_0.1@@HOMING_0.1", "HOMING_0.2@@HOMING_0.2"}
    assert {"malloc", "GOMP_parallel", "sigaction"} <= others
    assert not [one for one in others if "@" in one]


def test_linked_program_and_preloaded_library_are_one(prefix: Path, tmp_path: Path) -> None:
    program = tmp_path / "consumer"
    words = pkg_config(prefix, "--cflags", "--libs")
    succeed("gcc", CONSUMER / "consumer.c", *words, "-o", program, cwd=tmp_path)
    preload = os.fspath(library_folder(prefix) / "libhoming.so")
    for library in (preload, ""):
        more = {"LD_LIBRARY_PATH": os.fspath(library_folder(prefix)), "LD_PRELOAD": library}
        said = run(program, cwd=tmp_path, LD_DEBUG="files", **more)
        assert "consumer: well" in said.stdout
        assert len(set(re.findall(r"calling init: (\S*libhoming\S*)", said.stderr))) == 1


def pkg_config(prefix: Path, *questions: str) -> list[str]:
    folder = os.fspath(library_folder(prefix) / "pkgconfig")
    return shlex.split(succeed("pkg-config", *questions, "homing", cwd=prefix, PKG_CONFIG_PATH=folder))


def folders(words: list[str], flag: str) -> list[Path]:
    return [Path(word.removeprefix(flag)).resolve() for word in words if word.startswith(flag)]


def test_found_by_pkg_config(prefix: Path, tmp_path: Path) -> None:
    assert shutil.which("pkg-config"), "tools/packages.tsv lists it"
    words = pkg_config(prefix, "--cflags", "--libs")
    headers = [prefix / "include", prefix / "include" / "homing" / "fortran"]
    assert folders(words, "-I") == headers, "the installed headers, not those of this tree"
    program = tmp_path / "consumer"
    succeed("gcc", CONSUMER / "consumer.c", *words, "-o", program, cwd=tmp_path)
    assert "consumer: well" in succeed(
        program, cwd=tmp_path, LD_LIBRARY_PATH=os.fspath(library_folder(prefix))
    )


def test_installed_prefix_may_be_moved(prefix: Path) -> None:
    """It was made for /opt/homing."""
    assert folders(pkg_config(prefix, "--libs"), "-L") == [library_folder(prefix)]


def test_fortran_module_serves_gfortran_without_cmake(prefix: Path, tmp_path: Path) -> None:
    program = tmp_path / "consumer"
    words = pkg_config(prefix, "--cflags", "--libs")
    succeed("gfortran", CONSUMER / "consumer.f90", *words, "-o", program, cwd=tmp_path)
    assert "consumer: well" in succeed(
        program, cwd=tmp_path, LD_LIBRARY_PATH=os.fspath(library_folder(prefix))
    )


@pytest.mark.parametrize("compiler", FORTRAN)
def test_fortran_source_serves_any_compiler(prefix: Path, tmp_path: Path, compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    sources = sorted(Path(pkg_config(prefix, "--variable=fortrandir")[0]).glob("*.f90"))
    program = tmp_path / "consumer"
    words = pkg_config(prefix, "--cflags", "--libs")
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
        "include/homing/homing.h": "#define HOMING_VERSION_MAJOR {0[0]}\n"
        "#define HOMING_VERSION_MINOR {0[1]}\n"
        "#define HOMING_VERSION_PATCH {0[2]}\n",
    }
    import homing

    for name, form in stated.items():
        version = homing.__version__.split(".") if "{0[" in form else homing.__version__
        assert form.format(version) in (TREE / name).read_text(encoding="utf-8"), name
