"""What is no code of the user's: the runtimes' libraries and the headers of compilers and systems."""

from __future__ import annotations

#: Frames in these, and in the headers below, are the allocator and the containers: whoever called them is the
#: place that counts.
_LIBRARIES = ("libc", "libstdc++", "libc++", "libgfortran", "libFortranRuntime", "libgomp", "libomp", "libm")
_LIBRARIES_BEGIN = (
    *(name + mark for name in (*_LIBRARIES, "libhoming") for mark in ".-"),
    "libflang_rt",
    "ld-linux",
)
_HEADERS = ("/usr/include/", "/usr/lib/", "/usr/local/include/", "/usr/local/lib/")
_HEADERS_ANYWHERE = ("/include/c++/", "/lib/gcc/")
#: The same where a runtime is part of the program, and what is before main.
_RUNTIME = ("_FortranA", "Fortran::runtime", "__libc_start")


def is_library(path: str) -> bool:
    """Is this object one of the runtimes?"""
    _, slash, name = path.rpartition("/")
    return bool(slash) and name.startswith(_LIBRARIES_BEGIN) and ("." in name or "-" in name[3:])


def is_header(file: str) -> bool:
    """Is this source file one of the system or of a compiler?"""
    return file.startswith(_HEADERS) or any(folder in file for folder in _HEADERS_ANYWHERE)


def is_runtime(function: str) -> bool:
    """Is it a function of a runtime, or before main?"""
    return function == "_start" or function.startswith(_RUNTIME)
