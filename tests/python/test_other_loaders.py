"""Programs that a program starts, and that homing's library cannot be preloaded into: musl's loader does not
start a program with it (status 127)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python.test_programs import LIBRARY, run

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    const char* value = getenv("LD_PRELOAD");
    return puts(value ? value : "none") < 0;
}
"""
STARTS = """
import os, subprocess, sys
program = sys.argv[1]
for spawn in os.posix_spawn, os.posix_spawnp:
    os.waitpid(spawn(program, [program], os.environ), 0)
subprocess.run([program])
subprocess.run([program], env=dict(os.environ))
subprocess.run([program + ".script"])
os.execvp(program, [program])
"""


def test_a_program_of_another_loader_is_started_without_the_library(tmp_path: Path) -> None:
    """The loader is glibc's under a name of musl's: what the program gets shows in its environment."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc here")
    loader = tmp_path / "ld-musl-x86_64.so.1"
    ordinary, other = tmp_path / "ordinary", tmp_path / "other"
    for program, options in (ordinary, []), (other, [f"-Wl,--dynamic-linker={loader}"]):
        command = ["gcc", "-x", "c", "-", "-o", str(program), *options]
        subprocess.run(command, input=PROGRAM, text=True, check=True)
        script = program.with_suffix(".script")
        script.write_text(f"#!{program}\n")
        script.chmod(0o755)
    glibcs = re.search(rb"/lib[^\0]*/ld[^\0]*", ordinary.read_bytes())
    assert glibcs
    loader.symlink_to(glibcs[0].decode())
    python = os.path.realpath(sys.executable)
    for preload, left in (f"{LIBRARY}", "none"), (f"libm.so.6:{LIBRARY}", "libm.so.6"):
        for program, value in (ordinary, preload), (other, left):
            outcome, _ = run([python, "-c", STARTS, program], {"LD_PRELOAD": preload}, tmp_path)
            assert (outcome.status, outcome.stdout.split()) == (0, 6 * [value])


def test_an_environment_that_is_no_memory_is_an_error(tmp_path: Path) -> None:
    """As the kernel has it, of which no hook may make a crash."""
    code = """
import ctypes, os
library = ctypes.CDLL(None, use_errno=True)
arguments = (ctypes.c_char_p * 2)(b"true", None)
for path, names in (b"/bin/true", ctypes.c_void_p(8)), (None, None), (ctypes.c_void_p(8), None):
    print(library.execve(path, arguments, names), os.strerror(ctypes.get_errno()))
"""
    outcome, _ = run([sys.executable, "-c", code], {"LD_PRELOAD": str(LIBRARY)}, tmp_path)
    assert (outcome.status, outcome.stdout) == (0, 3 * "-1 Bad address\n")
