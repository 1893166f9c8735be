"""What the allocator hooks take of programs that allocate and free all the time: instructions, as valgrind
counts them, of a loop with homing less those of the same loop without."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.python.conftest import compile_c
from tests.python.test_programs import LIBRARY

#: Blocks of so many bytes, and at most so many instructions for a malloc and a free of one. glibc takes 555
#: for those of one of 4 to 8 KiB among 64; 0.2.0 began with 500 more.
MOST = {(16, 1000): 40, (1024, 4000): 40, (4096, 8192): 145, (8192, 65536): 145}

PROGRAM = """
#include <stdint.h>
#include <stdlib.h>
enum { SLOTS = 64 };
static double watched[1 << 16];
int main(int count, char** words) {
    const size_t least = strtoull(words[1], 0, 10), most = strtoull(words[2], 0, 10);
    const long blocks = strtol(words[3], 0, 10);
    static void* slots[SLOTS];
    uint64_t random = 88172645463325252u;
    #pragma omp parallel for
    for (int i = 0; i < 1 << 16; ++i) watched[i] = count;
    for (long i = 0; i < blocks; ++i) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        void** slot = &slots[(random >> 32) % SLOTS];
        free(*slot);
        *slot = malloc(least + (random & 0xffffff) % (most - least + 1));
    }
    return 0;
}
"""


def instructions(program: Path, least: int, most: int, blocks: int, preload: str) -> int:
    """Of a run; windows, whose faults valgrind does not bear, are off."""
    extra = {"HOMING_ASSUME_NODES": "4", "HOMING_NO_SIGNALS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program)]
        + [str(one) for one in (least, most, blocks)],
        env={**os.environ, **extra, "LD_PRELOAD": preload, "HOMING_RECORD": str(program) + ".record"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])


#: Small ones and those that are looked at; what lies between them and above takes the same ways.
SHORT = ((16, 1000), (4096, 8192))


@pytest.mark.parametrize(
    "sizes",
    [pytest.param(sizes, marks=[] if sizes in SHORT else pytest.mark.full) for sizes in MOST],
    ids=lambda sizes: f"{sizes[0]}-{sizes[1]}",
)
def test_a_block_takes_few_instructions_more(sizes: tuple[int, int], tmp_path: Path) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    program = compile_c(tmp_path / "blocks", PROGRAM, "-O2", "-fopenmp")
    few, many = 5_000, 25_000

    def of_a_block(preload: str) -> float:
        return (
            instructions(program, *sizes, many, preload) - instructions(program, *sizes, few, preload)
        ) / (many - few)

    more = of_a_block(str(LIBRARY)) - of_a_block("")
    assert -5 < more <= MOST[sizes], more
