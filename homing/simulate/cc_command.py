"""`homing cc COMPILER ARGS`: compile for the simulator."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.errors import UserError
from homing.simulate.cc import compile_with


def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMPILER ARGS...", help="gcc, g++, gfortran, clang, flang, ..."),
    ] = None,
) -> int:
    """Compile a program for `homing run --on MACHINE`: the compiler and its arguments, as they are.

    Also as one word, for make and CMake: CC=homing-gcc CXX=homing-g++ FC=homing-gfortran (and homing-clang,
    homing-clang++, homing-flang).
    """
    if not words:
        raise UserError("which compiler? homing cc gcc -O2 -fopenmp -o program program.c")
    return compile_with(words[0], words[1:])
