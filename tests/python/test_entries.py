"""No function of the C library is forgotten that reads or writes memory of the program through the kernel.

Each has a hook (src/hooks/syscalls/calls.hpp) and a test that calls it, or a reason why it needs none.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("HOMING_LIBRARY", TREE / "build" / "release" / "libhoming.so"))
PROGRAMS = TREE / "tests" / "programs"

#: The newest C library that was gone through. What is newer has not been looked at.
NEWEST = (2, 36)

#: What makes a hook of a line that begins with a function's name.
MACROS = r"CALL\d|OPEN|CONTROL|VPRINT|PRINT|FORBIDS|INIT|START|SPAWN|CLONE|START_WITHOUT|START_WITH|HOOK"

#: Hooks that no program calls, by why.
UNTESTED = {
    "needs a name server": [
        f"{underscores}res_{n}{name}"
        for underscores in ("", "__")
        for n in ("", "n")
        for name in ("query", "search", "querydomain", "send")
    ],
    "forbids windows, so that there is nothing to see (io aio)": [
        "aio_write",
        "aio_read64",
        "aio_write64",
        "lio_listio",
        "lio_listio64",
        "getaddrinfo_a",
    ],
    "another name of one that is called": [
        "__pthread_mutex_lock",
        "__pthread_rwlock_rdlock",
        "__pthread_rwlock_wrlock",
        "__pthread_once",
        "__clone",
        "_IO_setvbuf",
        "call_once",
    ],
    "needs a right": ["pthread_mutex_setprioceiling"],
}


@cache
def exported(library: str) -> dict[str, tuple[int, int] | None]:
    """The functions of a library, with the version of the C library that brought each; not those that new
    programs cannot be linked with."""
    run = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    found: dict[str, tuple[int, int] | None] = {}
    for line in run.stdout.splitlines():
        _, kind, symbol = line.split()
        name, _, version = symbol.partition("@@")
        if kind not in "TWi" or "PRIVATE" in version or "@" in name:
            continue
        match = re.search(r"(\d+)\.(\d+)", version)
        found[name] = (int(match[1]), int(match[2])) if match else None
    return found


def c_library() -> str:
    """Where it is, from a program that is linked with it."""
    run = subprocess.run(["ldd", str(LIBRARY)], capture_output=True, text=True, check=True)
    match = re.search(r"libc\.so\.6 => (\S+)", run.stdout)
    if not match:
        pytest.skip("no glibc here")
    return match[1]


def need_none() -> set[str]:
    lines = (PROGRAMS / "entries.txt").read_text().splitlines()
    return {name for line in lines if not line.startswith("#") for name in line.split()}


def hooks() -> set[str]:
    """The functions that the tables of calls name."""
    names: set[str] = set()
    for source in (TREE / "src" / "hooks").rglob("*.cpp"):
        names |= set(re.findall(rf"^HOMING_(?:{MACROS})\((\w+)", source.read_text(), re.M))
    return names


def test_every_function_has_a_door_or_needs_none() -> None:
    known = exported(str(LIBRARY)).keys() | need_none()
    forgotten = [
        name
        for name, version in exported(c_library()).items()
        if name not in known and (version is None or version <= NEWEST)
    ]
    assert not forgotten


def test_no_function_is_said_to_need_no_door_that_has_one() -> None:
    assert not need_none() & hooks()


def test_every_door_is_the_librarys() -> None:
    assert hooks() <= exported(str(LIBRARY)).keys()


def test_every_door_is_called() -> None:
    text = "\n".join(source.read_text() for source in PROGRAMS.glob("*.c"))
    called = set(re.findall(r"\w+", text))
    assert hooks() - called == {name for names in UNTESTED.values() for name in names}
