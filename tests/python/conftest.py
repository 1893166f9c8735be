"""What the tests of the command share: the command as a process, and a small library in place of
libhoming.so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.patience import PATIENCE

TREE = Path(__file__).resolve().parents[2]

#: The command `homing`: in Python, and as users have it, the native launcher, which starts Python.
IN_PYTHON = [sys.executable, "-m", "homing"]
NATIVE = TREE / "build" / "release" / "launcher" / "homing"
HOMING = [str(NATIVE), f"--homing-python={sys.executable}"] if NATIVE.exists() else IN_PYTHON

#: Stands for libhoming.so where a test is about the launcher: it leaves the record FAKE_RECORD (a file to
#: copy) in every process whose name is FAKE_NAME, as the library leaves its record.
FAKE_LIBRARY = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void enter(void) {
    const char *from = getenv("FAKE_RECORD"), *name = getenv("FAKE_NAME"), *to = getenv("HOMING_RECORD");
    if (!from || !name || !to || strcmp(name, program_invocation_short_name)) return;
    char path[4096], buffer[4096];
    size_t used = 0;
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : "0";
    for (; *to && used < sizeof path - 32; to++) {
        if (to[0] == '%' && to[1] == 'p') used += (size_t)sprintf(path + used, "%d", getpid()), to++;
        else if (to[0] == '%' && to[1] == 'r') used += (size_t)sprintf(path + used, "%s", rank), to++;
        else if (to[0] == '%' && to[1] == '%') path[used++] = *to++;
        else path[used++] = *to;
    }
    path[used] = 0;
    FILE *in = fopen(from, "rb"), *out = fopen(path, "wb");
    size_t count;
    while (in && out && (count = fread(buffer, 1, sizeof buffer, in)) > 0) fwrite(buffer, 1, count, out);
    if (in) fclose(in);
    if (out) fclose(out);
}
"""


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled library for LD_PRELOAD."""
    return compile_c(tmp_path_factory.mktemp("fake") / "libfake.so", FAKE_LIBRARY, "-shared", "-fPIC")


def compile_c(target: Path, source: str, *flags: str, compiler: str = "gcc") -> Path:
    """Compile a C program or library from its text."""
    code = target.with_suffix(".c")
    code.write_text(source)
    subprocess.run([compiler, "-O1", *flags, str(code), "-o", str(target)], check=True, timeout=PATIENCE)
    return target


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(params=["native", pytest.param("python", marks=pytest.mark.full)])
def homing(fake_library: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Command:
    """The command `homing` with the small library, run in an empty folder; temporary files go to `tmp`."""
    command = HOMING if request.param == "native" else IN_PYTHON
    temporary = tmp_path / "tmp"
    temporary.mkdir()

    def run(*words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *map(str, words)],
            env=environment(fake_library, temporary, **more),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )

    return run


def environment(library: Path, temporary: Path, **more: str) -> dict[str, str]:
    """An environment without anything of homing's, and with the small library."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HOMING", "OMP_", "LD_PRELOAD", "GOMP_", "KMP_", "ASAN_"))
    }
    return {
        **kept,
        "PYTHONPATH": str(TREE),
        "HOMING_LIBRARY": str(library),
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(temporary / "cache"),
        **more,
    }
