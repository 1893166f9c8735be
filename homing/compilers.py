"""What compilers take for sources, options and response files: once, for all that stands in their place."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from homing.errors import UserError

C_SOURCES = (".c", ".i")
CXX_SOURCES = (".cc", ".cp", ".cpp", ".cxx", ".c++", ".C", ".CPP", ".ii")
FORTRAN_SOURCES = (
    ".f", ".for", ".ftn", ".f77", ".f90", ".f95", ".f03", ".f08", ".f18",
    ".F", ".FOR", ".FTN", ".F77", ".F90", ".F95", ".F03", ".F08", ".F18",
)  # fmt: skip
SOURCES = (*C_SOURCES, *CXX_SOURCES, *FORTRAN_SOURCES)

#: Flags whose value is the next word.
WITH_VALUE = {
    "-o", "-I", "-L", "-l", "-D", "-U", "-x", "-J", "-include", "-imacros", "-isystem", "-iquote",
    "-idirafter", "-isysroot", "-MF", "-MT", "-MQ", "-Xlinker", "-Xclang", "-Xflang", "-Xpreprocessor",
    "-Xassembler", "-mllvm", "-module-dir", "-u", "-z", "-T", "-e", "--param", "-arch", "-target",
    "--sysroot", "-aux-info", "-dumpbase", "-B", "-A", "-framework", "-rpath",
    "-intrinsic-modules-path", "-fintrinsic-modules-path",
}  # fmt: skip

#: Without one of these a command compiles and links.
NOT_LINKING = {"-c", "-S", "-E", "-fsyntax-only", "-M", "-MM"}
#: Nothing is generated.
NOT_COMPILING = {
    "-E",
    "-fsyntax-only",
    "-M",
    "-MM",
    "--version",
    "-dumpversion",
    "-dumpmachine",
    "-###",
    "--help",
}

#: Response files within one another; people nest them once.
_MOST_RESPONSE_FILES = 20
#: How compilers are asked for OpenMP: gcc and clang, nvfortran and nvc, Intel's, Cray's, IBM's.
_OPENMP = re.compile(r"-(fopenmp(=.*)?|mp(=.*)?|q?openmp|fiopenmp|homp|qsmp=omp)")


def has_openmp(arguments: Sequence[str]) -> bool:
    """Does the compiler read OpenMP's directives?"""
    return any(_OPENMP.fullmatch(word) for word in arguments)


def values_of(option: str, flags: Sequence[str]) -> list[str]:
    """The values of -I, or of another option of one letter, in one word with it or in the next."""
    found = []
    for index, word in enumerate(flags):
        if word.startswith(option):
            found.append(word[len(option) :] or "".join(flags[index + 1 : index + 2]))
    return [value for value in found if value]


def expand_response_files(arguments: Sequence[str], within: tuple[str, ...] = ()) -> list[str]:
    """@FILE stands for the words in it; of a file that is not there, the compilers take the word as it is.
    UserError where it is no file, or is named within itself. within: the files that are being read."""
    words: list[str] = []
    for word in arguments:
        if not word.startswith("@") or not os.path.exists(word[1:]):
            words.append(word)
            continue
        import shlex

        from homing.files import MOST_DESCRIPTION, read_text

        path = os.path.realpath(word[1:])
        if path in within or len(within) > _MOST_RESPONSE_FILES:
            raise UserError(f"{word}: response files name one another without end")
        text = read_text(word[1:], MOST_DESCRIPTION, word, errors="surrogateescape")
        try:
            more = shlex.split(text)
        except ValueError as error:
            raise UserError(f"{word}: {str(error).lower()}") from error
        words += expand_response_files(more, (*within, path))
    return words
