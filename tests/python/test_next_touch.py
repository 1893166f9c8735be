"""Next touch of unmodified programs: what is armed, and what is left out."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from homing.records import read_record
from tests.patience import PATIENCE
from tests.python.test_programs import LIBRARY

#: An array of 8 MiB that is written once, and regions of some microseconds that touch two pages of it.
SHORT_REGIONS = r"""
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const long count = 1 << 20;
    double* array = malloc(count * sizeof *array);
    for (long i = 0; i < count; ++i) array[i] = 1;
    for (int region = 0; region < 2000; ++region) {
#pragma omp parallel
        array[omp_get_thread_num() * count / omp_get_num_threads() + 9000] += 1;
    }
    double sum = 0;
    for (long i = 0; i < count; ++i) sum += array[i];
    printf("%.0f\n", sum - count);
    return 0;
}
"""


def test_regions_that_are_over_sooner_than_they_are_armed_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "short.c").write_text(SHORT_REGIONS)
    subprocess.run(["gcc", "-O1", "-fopenmp", "short.c", "-o", "short"], cwd=tmp_path, check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOMING")}
    environment |= {
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "passive",
        "LD_PRELOAD": str(LIBRARY),
        "HOMING_ASSUME_NODES": "2",
        "HOMING_MECHANISM": "next-touch",
        "HOMING_ARM": "every-region",
        "HOMING_RECORD": str(tmp_path / "r.homing"),
    }
    done = subprocess.run(
        [tmp_path / "short"], env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (0, "4000\n")
    said = [one.text for one in read_record(str(tmp_path / "r.homing")).messages]
    assert any("regions were not armed: that takes" in text for text in said), said
