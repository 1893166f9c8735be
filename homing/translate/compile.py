"""Translate and compile in one step: `homing translate --to T -- gfortran ARGS`, and homing-translate-fc
and homing-translate-cc."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from homing.compilers import NOT_LINKING, expand_response_files
from homing.errors import UserError
from homing.installation import find_headers
from homing.integers import decimal
from homing.paths import Cache
from homing.translate.directives import scanner
from homing.translate.directives.model import Form
from homing.translate.not_translated import REFUSED, directives_in, parallel_in_cxx, sources_of
from homing.translate.plan.collect import collected
from homing.translate.plan.model import Plan
from homing.translate.positions import TranslationError

if TYPE_CHECKING:
    from homing.translate.command import Explain
    from homing.translate.translation import Options, Result

_RUNTIME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runtime")
#: The preprocessor's output is a source, whose turn comes later (CMake with Ninja does so for Fortran).
_PREPROCESSING = frozenset({"-E", "-M", "-MM"})
#: Fortran that has no arrays of any type.
_OLD_FORTRAN = frozenset({"-std=f95", "-std=f2003", "-std=f2008"})
#: Commands in front of a compiler. homing's own has two words.
_LAUNCHERS = frozenset({"ccache", "sccache", "distcc", "icecc"})


def _launcher(words: Sequence[str]) -> int:
    """How many words stand before the compiler: "homing cc", "ccache"."""
    count = 0
    while count + 1 < len(words):
        name = os.path.basename(words[count])
        if name == "homing" and words[count + 1] == "cc" and count + 2 < len(words):
            count += 2
        elif name in _LAUNCHERS:
            count += 1
        else:
            break
    return count


def translate_and_compile(
    words: Sequence[str], target: str, phases: bool, told: Explain, line_length: int, flags: Sequence[str]
) -> int:
    """Run the compiler's command on translated sources. Returns its exit status."""
    from homing.translate.command import Explain, refused, report_problems, say, show, tell
    from homing.translate.translation import Options, translate

    before = _launcher(words)
    launcher, (compiler, *arguments) = words[:before], words[before:]
    arguments = expand_response_files(arguments)
    if os.path.dirname(compiler):
        compiler = os.path.abspath(compiler)  # the runtime is compiled elsewhere
    if shutil.which(compiler) is None:
        raise UserError(f"{compiler}: command not found")
    if not _PREPROCESSING.isdisjoint(arguments):
        if told is not Explain.NOTHING:
            raise UserError("--explain: not with -E, -M or -MM, whose output goes where the plan would")
        return subprocess.run(words, check=False).returncode
    found = sources_of(compiler, arguments)
    sources = found.translated
    read = any(path == "-" for path, _ in found.others)
    standard_input = sys.stdin.buffer.read() if read else None
    problems = list(directives_in(found.others, standard_input or b""))
    if target == "upm":
        problems += parallel_in_cxx(found.others)
    if problems:
        report_problems(TranslationError(problems))
        say(f"{len(problems)} problem{'s' if len(problems) != 1 else ''}; nothing was compiled")
        show(collected(target, [path for path, _ in found.others], (), (), problems, ()), told)
        return REFUSED
    if target == "upm":
        for path, what in found.others:
            if what == "C++":
                print(f"{path}: {what} is not translated: no calls are inserted", file=sys.stderr)
    preprocess = [*flags, *_preprocessor_flags(arguments)]
    if not any(word.startswith("-fopenmp") for word in arguments):
        preprocess.append("-U_OPENMP")
    if any(word.startswith("-ffixed-line-length-") for word in arguments):
        text = next(w for w in arguments if w.startswith("-ffixed-line-length-")).rpartition("-")[2]
        length = 0 if text == "none" else decimal(text)
        if length is None:
            raise UserError(f"-ffixed-line-length-{text}: must be a number or none")
        line_length = length
    with tempfile.TemporaryDirectory(prefix="homing-translate-") as folder:
        changed = False
        if sources:
            paths = [arguments[index] for index in sources]
            options = Options(target, phases, line_length, tuple(preprocess), 1, compiler)
            try:
                result = _with_the_rest(paths, options) if target == "upm" else translate(paths, options)
            except TranslationError as error:
                return refused(error, told, "nothing was compiled")
            tell(result, target, told)
            changed = _written(result, sources, arguments, folder)
        if not sources:
            show(Plan(target, ()), told)
        arguments += _more_arguments(compiler, arguments, sources, target, changed)
        return subprocess.run([*launcher, compiler, *arguments], check=False, input=standard_input).returncode


def _written(result: Result, sources: Sequence[int], arguments: list[str], folder: str) -> bool:
    """The translated sources into the folder, and into the compiler's arguments in place of the user's. Is
    there any?"""
    folders: list[str] = []
    for number, (index, output) in enumerate(zip(sources, result.outputs, strict=True)):
        if not output.changed:
            continue
        inner = os.path.join(folder, str(number))
        os.makedirs(inner)
        path = os.path.join(inner, os.path.basename(output.path))
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(output.text)
        arguments[index] = path
        folders.append(os.path.dirname(os.path.abspath(output.path)))
    arguments += [f"-I{original}" for original in dict.fromkeys(folders)]
    return bool(folders)


def _more_arguments(
    compiler: str, arguments: Sequence[str], sources: Sequence[int], target: str, changed: bool
) -> list[str]:
    """The compiler's arguments for the runtime, or for homing's library. changed: some source was
    translated."""
    more: list[str] = []
    links = NOT_LINKING.isdisjoint(arguments)
    objects = any(word.endswith((".o", ".a")) for word in arguments)
    if target == "upm":
        if changed and (headers := find_headers()):
            more.append(f"-I{headers}")
        if changed and not _OLD_FORTRAN.isdisjoint(arguments):
            more.append("-std=gnu")  # the calls' interfaces are of a later Fortran
        if links and changed:
            more += _homing_library()
        elif links and objects:
            # Objects of an earlier command may have calls; without any, the program does without homing.
            more += ["-Wl,--push-state,--as-needed", *_homing_library(), "-Wl,--pop-state"]
    elif changed or links:
        c_only = all(scanner.form_of(arguments[i]) is Form.C for i in sources) if sources else False
        where = _runtime(compiler, target, fortran=not c_only)
        more.append(f"-I{where}")
        if links and (sources or objects):
            more += [os.path.join(where, "libhoming_parts.a"), *_link_flags(target)]
    return more


def _with_the_rest(paths: Sequence[str], options: Options) -> Result:
    """--to upm: translated in view of the program's other files, as far as they can be read. What is found is
    told by the command that compiles a file with calls, or the main program."""
    from homing.translate.targets.upm.files import others_of
    from homing.translate.translation import translate

    others = others_of(paths)
    beside = list(others.paths)
    while True:
        try:
            result = translate(paths, replace(options, beside=tuple(beside)))
            break
        except TranslationError as error:
            wrong = {os.path.normpath(problem.position.file) for problem in error.problems} & set(beside)
            if not wrong:
                raise
            others.lines += [f"upm: {path} cannot be read, and is not followed" for path in sorted(wrong)]
            beside = [path for path in beside if path not in wrong]
    given = {os.path.normpath(path) for path in paths}
    result.notes = [note for note in result.notes if os.path.normpath(note.position.file) in given]
    hot = any(line.startswith("upm: hot: ") for line in result.report)
    if any(output.changed for output in result.outputs) or (others.told and (hot or others.main)):
        result.report = [*others.lines, *result.report]
    else:
        result.report = []
    return result


def _preprocessor_flags(arguments: Sequence[str]) -> list[str]:
    found = []
    for index, word in enumerate(arguments):
        if word in ("-I", "-D", "-include", "-isystem", "-iquote") and index + 1 < len(arguments):
            found += [word, arguments[index + 1]]
        elif word in ("-cpp", "-nocpp") or (word.startswith(("-I", "-D", "-U", "-std=")) and len(word) > 2):
            found.append(word)
    return found


def _is_fortran(compiler: str) -> bool:
    name = os.path.basename(compiler)
    return any(word in name for word in ("gfortran", "flang", "mpif", "fort"))


def _companion(compiler: str) -> str:
    """The C compiler that shares an OpenMP runtime with this compiler."""
    name = os.path.basename(compiler)
    if "flang" in name or "clang" in name:
        if "clang" in name:
            return compiler
        version = name.rpartition("-")[2]
        for candidate in (f"clang-{version}" if version.isdigit() else "clang", "clang"):
            if shutil.which(candidate):
                return candidate
        raise UserError(f"{compiler}: no clang beside it, which its OpenMP needs")
    return "gcc"


def _mpi_flags(what: str) -> list[str]:
    """--showme:compile or --showme:link of Open MPI."""
    wrapper = shutil.which("mpicc")
    if wrapper is None:
        raise UserError("--to mpi: mpicc is not here (Debian: openmpi-bin, libopenmpi-dev)")
    done = subprocess.run([wrapper, f"--showme:{what}"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError("--to mpi: 'mpicc --showme' fails; only Open MPI is supported")
    return shlex.split(done.stdout)


def _link_flags(target: str) -> list[str]:
    if target == "mpi":
        return _mpi_flags("link")
    if target == "pages":
        return _homing_library()
    return []


def _homing_library() -> list[str]:
    from homing.installation import find_library

    library = find_library()
    return [library, f"-Wl,-rpath,{os.path.dirname(library)}"]


def _run(command: Sequence[str], folder: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr, end="")
        raise UserError(f"the runtime cannot be compiled: {' '.join(command)}")


def _runtime(compiler: str, target: str, fortran: bool) -> str:
    """A folder with libhoming_parts.a, and with its Fortran module where that is wanted: made once for each
    compiler and kept in homing's cache."""
    base = "homing_parts"
    with_fortran = fortran and _is_fortran(compiler)
    digest = hashlib.sha256()
    for name in sorted(os.listdir(_RUNTIME)):
        if os.path.isfile(os.path.join(_RUNTIME, name)):
            with open(os.path.join(_RUNTIME, name), "rb") as file:
                digest.update(file.read())
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    digest.update(f"{shutil.which(compiler)}\n{version}\n{target}\n{with_fortran}".encode())
    cache = Cache("translate")
    name = digest.hexdigest()[:24]
    place = cache.find(name)
    if place and os.path.exists(os.path.join(place, "libhoming_parts.a")):
        return place

    def build(building: str) -> None:
        for source in (f"{base}.h", f"{base}.c", f"{base}.f90"):
            if os.path.exists(os.path.join(_RUNTIME, source)):
                shutil.copy(os.path.join(_RUNTIME, source), building)
        c_compiler = _companion(compiler)
        c_flags = ["-DHOMING_MPI", *_mpi_flags("compile")] if target == "mpi" else []
        objects = [f"{base}.o"]
        _run([c_compiler, "-O2", "-g", "-fPIC", "-fopenmp", *c_flags, "-c", f"{base}.c"], building)
        if with_fortran:
            _run(
                [compiler, "-O2", "-g", "-fPIC", "-fopenmp", "-c", f"{base}.f90", "-o", "module.o"], building
            )
            objects.append("module.o")
        _run(["ar", "crs", "libhoming_parts.a", *objects], building)

    return cache.make(f"{name}/", build)


def _one_word(default: str, variable: str) -> int:
    from homing.cli import main

    target = shlex.split(os.environ.get("HOMING_TRANSLATE") or "spmd")
    compiler = shlex.split(os.environ.get(variable) or default)
    return main(["translate", "--to", *target, "--", *compiler, *sys.argv[1:]])


def fortran_main() -> int:
    """homing-translate-fc: HOMING_FC (gfortran) behind a translation to HOMING_TRANSLATE (spmd), which may
    have options behind the target: "upm --phases"."""
    return _one_word("gfortran", "HOMING_FC")


def c_main() -> int:
    """homing-translate-cc: HOMING_CC (gcc) behind a translation to HOMING_TRANSLATE (spmd)."""
    return _one_word("gcc", "HOMING_CC")
