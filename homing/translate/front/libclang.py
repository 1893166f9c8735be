"""libclang held in hands: where it is, what it does when it fails, and when it dies."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import resource
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache

from clang import cindex

from homing.errors import UserError

#: Types of arrays, of any size that is said or not.
ARRAYS = (
    cindex.TypeKind.CONSTANTARRAY,
    cindex.TypeKind.VARIABLEARRAY,
    cindex.TypeKind.INCOMPLETEARRAY,
)
#: Declarations of variables and arguments.
VARIABLES = (cindex.CursorKind.VAR_DECL, cindex.CursorKind.PARM_DECL)
#: What the preprocessor does, where that is recorded: the first and most of a file's children.
MACROS = frozenset(
    [
        cindex.CursorKind.MACRO_DEFINITION,
        cindex.CursorKind.MACRO_INSTANTIATION,
        cindex.CursorKind.INCLUSION_DIRECTIVE,
        cindex.CursorKind.PREPROCESSING_DIRECTIVE,
    ]
)


def sizes(kind: cindex.Type) -> Iterator[int]:
    """Those of an array whose sizes are numbers, one a dimension."""
    while kind.kind is cindex.TypeKind.CONSTANTARRAY:
        yield kind.element_count
        kind = kind.element_type.get_canonical()


def other_files(path: str, top: cindex.Cursor) -> Iterator[str]:
    """The files that are included, but for those of the system."""
    for one in top.translation_unit.get_includes():
        begin = cindex.SourceLocation.from_offset(top.translation_unit, one.include, 0)
        if not begin.is_in_system_header and one.include.name != path:
            yield str(one.include.name)


@lru_cache(maxsize=1)
def index() -> cindex.Index:
    places = [
        *glob.glob("/usr/lib/llvm-19/lib/libclang-19.so*"),
        *glob.glob("/usr/lib/llvm-19/lib/libclang.so*"),
        *glob.glob("/usr/lib/*/libclang-19.so*"),
    ]
    stated = os.environ.get("HOMING_LIBCLANG")
    for path in [stated] if stated else places:
        if path and os.path.isfile(path):
            cindex.Config.set_library_file(path)
            break
    else:
        raise UserError("libclang 19 is not here (Debian: libclang1-19), or set HOMING_LIBCLANG to its file")
    try:
        return cindex.Index.create()
    except cindex.LibclangError as error:
        raise UserError(f"libclang cannot be loaded: {error}") from error


@lru_cache(maxsize=1)
def other_headers() -> tuple[str, ...]:
    """gcc's own headers (omp.h), behind clang's."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return ()
    found = subprocess.run([gcc, "-print-file-name=include"], capture_output=True, text=True, check=False)
    return ("-idirafter", found.stdout.strip()) if found.returncode == 0 else ()


def _deep(error: BaseException) -> BaseException:
    """RecursionError also where ctypes met it while it made a callback's argument."""
    inside = isinstance(error, ctypes.ArgumentError) and "RecursionError" in str(error)
    return RecursionError() if inside else error


@contextlib.contextmanager
def raising_callbacks() -> Iterator[None]:
    """libclang calls back for each child of a cursor, and what is raised there (nesting too deep) is printed
    and forgotten by ctypes: a part of the tree would be missing. Here it is raised at the end."""
    failed: list[BaseException | None] = []
    before = sys.unraisablehook
    sys.unraisablehook = lambda told: failed.append(told.exc_value)
    try:
        yield
    except Exception as error:  # where a part is missing, what is there is not understood either
        raise _deep(failed[0] if failed and failed[0] else error) from None
    finally:
        sys.unraisablehook = before
    if failed:
        raise _deep(failed[0] or RecursionError())


def survives(parse: Callable[[], object]) -> bool:
    """Does libclang survive this? It dies of a stack that is too small, and takes the process with it: tried
    in a process of its own, which costs some tens of milliseconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child only parses and ends
        child = os.fork()
    if child == 0:
        status = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what libclang says of its crash
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            parse()
            status = 0
        finally:
            os._exit(status)
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:  # the time is up
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    return status == 0
