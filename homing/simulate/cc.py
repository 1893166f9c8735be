"""`homing cc COMPILER ARGS` and the one-word commands `homing-gcc`, `homing-gfortran`, ...

The compiler as it is, with the instrumentation that the simulator needs.

GCC: -fsanitize=thread, and -B with a folder where our callbacks lie under the name of its own runtime. It
instruments before it vectorises, so every access is seen.

LLVM (clang, clang++, flang): each source is compiled to instrumented IR without vectors (accesses wider than
16 bytes would be dropped silently), and from there to an object, our callbacks inlined. flang has no
instrumentation of its own: LLVM's opt does it.

What drops accesses is refused; and the first use of a compiler with some flags is an exam
(homing/simulate/check.py). Imports stay few: a build calls this for every source.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from homing.compilers import (
    FORTRAN_SOURCES,
    NOT_COMPILING,
    NOT_LINKING,
    SOURCES,
    WITH_VALUE,
    expand_response_files,
    values_of,
)
from homing.errors import MISUSE, UserError, os_reason, unexpected
from homing.installation import find_callbacks, find_fortran_module, find_headers, find_library

if TYPE_CHECKING:
    from homing.paths import Cache

#: Set while the exam compiles its own programs.
EXAM = "HOMING_CC_EXAM"

GCC_FLAGS = ["-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0"]
#: Copies of constant size would be expanded in place, where nothing counts them.
GCC_C_FLAGS = ["-fno-builtin-memcpy", "-fno-builtin-memmove", "-fno-builtin-memset"]
NO_VECTORS = ["-fno-vectorize", "-fno-slp-vectorize"]
_TSAN_OPTIONS = ["-tsan-instrument-read-before-write=1", "-tsan-instrument-func-entry-exit=0"]


@dataclass
class Job:
    """A compiler's command line, as far as it matters here."""

    arguments: list[str]
    sources: list[int] = field(default_factory=list)  # positions in arguments
    output: int = -1  # position of the value of -o, or of -oFILE
    language: str = ""  # of -x

    @property
    def links(self) -> bool:
        return not any(one in NOT_LINKING or one.startswith("-print-") for one in self.arguments)

    @property
    def compiles(self) -> bool:
        return bool(self.sources) and not any(
            one in NOT_COMPILING or one.startswith("-print-") for one in self.arguments
        )

    @property
    def output_name(self) -> str:
        if self.output < 0:
            return ""
        word = self.arguments[self.output]
        return word[2:] if word.startswith("-o") else word


def parse(arguments: Sequence[str]) -> Job:
    """Find the sources and the output of a compiler's command line."""
    job = Job(list(arguments))
    at = 0
    while at < len(job.arguments):
        word = job.arguments[at]
        if word == "-o":  # at the end of the line it is the compiler's to complain
            job.output = at + 1 if at + 1 < len(job.arguments) else -1
        elif word.startswith("-o") and len(word) > 2 and not word.startswith("-openmp"):
            job.output = at
        elif word == "-x" and at + 1 < len(job.arguments):
            job.language = job.arguments[at + 1]
        elif word == "-" or (
            not word.startswith("-") and (word.endswith(SOURCES) or job.language not in ("", "none"))
        ):
            job.sources.append(at)
        at += 2 if word in WITH_VALUE else 1
    return job


def refuse(arguments: Sequence[str]) -> None:
    """UserError for what would drop accesses or cannot be simulated."""
    for word in arguments:
        reason = ""
        if word.startswith("-flto") or word == "-fwhole-program":
            reason = (
                "link-time optimisation drops the instrumentation, and nothing would be counted: leave it out"
            )
        elif word in ("-static", "-static-pie", "--static"):
            reason = "a static program cannot be simulated: link it dynamically"
        elif re.match(r"-fsanitize=(?!thread$)", word) and "thread" not in word:
            reason = "another sanitizer's runtime cannot be there at the same time: leave it out"
        elif word.startswith(("-fprofile-generate", "-fprofile-instr-generate")):
            reason = "profiling adds accesses of its own, and they would be counted: leave it out"
        elif word in ("-fopenacc", "-fopenmp-targets") or word.startswith("-fopenmp-targets="):
            reason = "code for other devices is not simulated: leave it out"
        if reason:
            raise UserError(f"{word}: {reason}")


def family(compiler: str) -> str:
    """gcc, clang or flang; UserError for any other."""
    name = re.sub(r"^.*[/]", "", compiler)
    plain = re.sub(r"^([\w]+-)*?(?=(gcc|g\+\+|gfortran|clang|flang|cc$|c\+\+$))", "", name)
    if re.match(r"(gcc|g\+\+|gfortran)(-[\d.]+)?$", plain):
        return "gcc"
    if re.match(r"clang(\+\+)?(-[\d.]+)?$", plain):
        return "clang"
    if re.match(r"flang(-new)?(-[\d.]+)?$", plain):
        return "flang"
    text = _version(compiler)
    if "clang" in text:
        return "clang"
    if "flang" in text:
        return "flang"
    if "Free Software Foundation" in text:
        return "gcc"
    raise UserError(f"{compiler}: is neither GCC (gcc, g++, gfortran) nor LLVM (clang, clang++, flang-new)")


def _version(compiler: str) -> str:
    try:
        return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def find_compiler(name: str) -> str:
    """The compiler's path. UserError where it is not there."""
    path = shutil.which(name)
    if path is None:
        raise UserError(f"{name}: compiler not found", 127)
    return path


def run(words: Sequence[str], verbose: bool = False) -> int:
    """Run a command; returns its status."""
    if verbose:
        print(" ".join(words), file=sys.stderr)
    try:
        return subprocess.run(list(words), check=False).returncode
    except OSError as error:
        raise UserError(f"{words[0]}: {os_reason(error)}") from error


def compile_with(name: str, arguments: Sequence[str]) -> int:
    """Compile and link with the instrumentation; the compiler's own status."""
    compiler = find_compiler(name)
    kind = family(compiler)
    words = [word for word in expand_response_files(arguments) if word != "-fsanitize=thread"]
    job = parse(words)
    if not job.compiles and not job.links:
        return run([compiler, *words])
    inputs = [word for word in words if not word.startswith("-")]
    if not inputs:
        return run([compiler, *words])
    refuse(words)
    words += _calls(compiler, kind, words, job)
    job = parse(words)
    if job.compiles and not os.environ.get(EXAM):
        from homing.simulate import check

        check.examine(compiler, kind, words, job)
    if kind == "gcc":
        return _gcc(compiler, job)
    return _llvm(compiler, kind, job)


def _calls(compiler: str, kind: str, words: Sequence[str], job: Job) -> list[str]:
    """The folders of homing's header, Fortran module and library for a program that calls it, where they are
    not installed for all (a wheel, a source tree). They stand behind the user's own, which come first."""
    flags: list[str] = []
    # flang knows no -idirafter, and the module and its library are gfortran's.
    if job.compiles and kind != "flang":
        headers, module = find_headers(), find_fortran_module()
        flags += ["-idirafter", headers] if headers else []
        fortran = any(words[at].endswith(FORTRAN_SOURCES) for at in job.sources)
        flags += [f"-I{module}"] if module and fortran else []
    libraries = {*values_of("-l", words)} & {"homing", "homing_fortran"}
    if job.links and libraries:
        folder = os.path.dirname(find_library())
        flags += [f"-L{folder}", f"-Wl,-rpath,{folder}"]
        # What `use homing` calls comes first, what that calls after it: some linkers only look forward.
        module_there = os.path.isfile(os.path.join(folder, "libhoming_fortran.a"))
        if kind == "gcc" and libraries == {"homing"} and module_there and _is_fortran(compiler, job):
            flags += ["-lhoming_fortran", "-lhoming"]
    return flags


def _is_fortran(compiler: str, job: Job) -> bool:
    name = os.path.basename(compiler)
    sources = (job.arguments[at] for at in job.sources)
    return "gfortran" in name or "flang" in name or any(one.endswith(FORTRAN_SOURCES) for one in sources)


def _gcc(compiler: str, job: Job) -> int:
    # Statically, because the shared one would stand before the objects; a shared object gets it by name.
    flags = [*GCC_FLAGS, "-static-libtsan", "-B", find_callbacks(), *(_runtime() if job.links else [])]
    if not _is_fortran(compiler, job):
        flags += GCC_C_FLAGS
    return run([compiler, *job.arguments, *flags])


def _runtime() -> list[str]:
    # Through the linker's flags: behind -x a file of its own would be taken for a source.
    return ["-Wl," + os.path.join(find_callbacks(), "libtsan.a"), "-ldl"]


def _llvm(compiler: str, kind: str, job: Job) -> int:
    if not job.compiles:
        return run([compiler, *job.arguments, *_runtime()])
    if "-S" in job.arguments or "-emit-llvm" in job.arguments:
        raise UserError("-S and -emit-llvm: only objects can be made (-c)")
    sources = [job.arguments[at] for at in job.sources]
    if job.output_name and len(sources) > 1 and not job.links:
        raise UserError("-o with several sources: the compiler would refuse it")
    folder = tempfile.mkdtemp(prefix="homing-cc-")
    try:
        objects = []
        for number, at in enumerate(job.sources):
            source = job.arguments[at]
            stem = os.path.splitext(os.path.basename(source))[0]
            own = os.path.join(folder, f"{number}-{stem}.o")
            made = own if job.links else job.output_name or stem + ".o"
            status = _llvm_object(compiler, kind, job, at, made, os.path.join(folder, f"{number}.ll"))
            if status != 0:
                return status
            objects.append(made)
        if not job.links:
            return 0
        names = dict(zip(job.sources, objects, strict=True))
        words = [names.get(at, word) for at, word in enumerate(job.arguments)]
        if "-x" in words:  # what remains are objects
            at = words.index("-x")
            del words[at : at + 2]
        return run([compiler, *words, *_runtime()])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _compile_flags(job: Job, keep: int) -> list[str]:
    """The flags of a compilation of one source: without other sources, objects, libraries and the output."""
    words: list[str] = []
    at = 0
    while at < len(job.arguments):
        word = job.arguments[at]
        width = 2 if word in WITH_VALUE else 1
        drop = (
            word in ("-c", "-o", "-Xlinker", "-l", "-L", "-MD", "-MMD", "-MP")
            or at == job.output
            or (at in job.sources and at != keep)
            or word.startswith(("-l", "-L", "-Wl,", "-rdynamic"))
            or (not word.startswith("-") and at not in job.sources)
        )
        if not drop:
            words += job.arguments[at : at + width]
        at += width
    return words


def _llvm_object(compiler: str, kind: str, job: Job, at: int, made: str, ir: str) -> int:
    """One source: instrumented IR, then an object with the callbacks inlined."""
    flags = _compile_flags(job, at)
    clang = compiler if kind == "clang" else _beside(compiler, "clang")
    if kind == "clang":
        instrument = ["-fsanitize=thread", *NO_VECTORS]
        for option in _TSAN_OPTIONS:
            instrument += ["-mllvm", option]
        depends = _dependencies(job, made)
        status = run([compiler, *flags, *instrument, *depends, "-S", "-emit-llvm", "-o", ir])
    else:
        plain = ir + ".plain"
        vectors = ["-mllvm", "-vectorize-loops=false", "-mllvm", "-vectorize-slp=false"]
        status = run([compiler, *flags, *vectors, "-S", "-emit-llvm", "-o", plain])
        if status == 0:
            passes = ["-passes=forceattrs,tsan-module,function(tsan)", "-force-attribute=sanitize_thread"]
            opt = _beside(compiler, "opt")
            status = run([opt, *passes, *_TSAN_OPTIONS, "-S", plain, "-o", ir])
    if status != 0:
        return status
    # The IR is as optimised as the user wanted; what is left is to inline the callbacks.
    level = [word for word in flags if re.match(r"-O([0-3sz]|fast)?$", word)][-1:] or ["-O1"]
    if level == ["-O0"]:
        level = ["-O1"]
    if level == ["-Ofast"]:
        level = ["-O3"]
    machine = [
        word for word in flags if re.match(r"-(m(?!llvm|odule)|fPIC|fpic|fPIE|fpie|fno-pic|fno-pie|g)", word)
    ]
    bitcode = ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", _inlined(clang)]
    return run(
        [
            clang,
            *level,
            *machine,
            *NO_VECTORS,
            "-Wno-unused-command-line-argument",
            "-c",
            "-x",
            "ir",
            ir,
            *bitcode,
            "-o",
            made,
        ]
    )


def _dependencies(job: Job, made: str) -> list[str]:
    """Make's dependency files name the object, not our IR."""
    words = [word for word in job.arguments if word in ("-MD", "-MMD", "-MP")]
    if any(word in ("-MD", "-MMD") for word in words):
        if "-MT" not in job.arguments and "-MQ" not in job.arguments:
            words += ["-MT", made]
        if "-MF" not in job.arguments:
            words += ["-MF", os.path.splitext(made)[0] + ".d"]
    return words


def _beside(compiler: str, tool: str) -> str:
    """clang or opt of the same LLVM as the compiler."""
    version = re.search(r"-(\d+)$", os.path.basename(compiler))
    folder = os.path.dirname(os.path.realpath(compiler))
    names = [f"{tool}-{version[1]}"] if version else []
    names += [os.path.join(folder, tool), tool]
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    raise UserError(f"{os.path.basename(compiler)}: needs {names[0]} of the same LLVM, which is not here")


@functools.cache
def cache() -> Cache:
    """Where results of the exam and bitcode are kept."""
    from homing.paths import Cache

    return Cache("cc")


def stamp(*paths: str) -> str:
    """Differs when one of these files does."""
    import hashlib

    digest = hashlib.sha256()
    for path in paths:
        there = os.stat(path)
        digest.update(f"{os.path.realpath(path)} {there.st_size} {there.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:24]


def _inlined(clang: str) -> str:
    """The callbacks as bitcode of this clang."""
    folder = find_callbacks()
    source = os.path.join(folder, "inline.c")
    sources = [os.path.join(folder, name) for name in ("inline.c", "callbacks.h", "context.h")]
    name = f"inline-{stamp(clang, *sources)}.bc"

    def compile_to(made: str) -> None:
        words = [clang, "-O2", "-fPIC", "-g0", "-emit-llvm", "-c", "-I", folder, source, "-o", made]
        if run(words) != 0:
            raise UserError(f"{clang}: cannot compile {source}")

    return cache().find(name) or cache().make(name, compile_to)


def main(name: str, arguments: Sequence[str] | None = None) -> int:
    """A one-word command."""
    try:
        return compile_with(name, sys.argv[1:] if arguments is None else arguments)
    except UserError as error:
        print(f"homing cc: {error.message}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        print(f"homing cc: {unexpected(error)}", file=sys.stderr)
        return MISUSE


def gcc() -> int:
    return main(os.environ.get("HOMING_GCC", "gcc"))


def gxx() -> int:
    return main(os.environ.get("HOMING_GXX", "g++"))


def gfortran() -> int:
    return main(os.environ.get("HOMING_GFORTRAN", "gfortran"))


def _newest(name: str, *alternatives: str) -> str:
    return next((one for one in (name, *alternatives) if shutil.which(one)), name)


def clang() -> int:
    return main(os.environ.get("HOMING_CLANG") or _newest("clang", "clang-19"))


def clangxx() -> int:
    return main(os.environ.get("HOMING_CLANGXX") or _newest("clang++", "clang++-19"))


def flang() -> int:
    return main(os.environ.get("HOMING_FLANG") or _newest("flang-new", "flang-new-19", "flang"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else 2)
