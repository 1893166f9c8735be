"""What is watched besides large blocks and static arrays: small blocks in any allocator's memory, memory that
the program maps itself, and temporaries that come again."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.record_rows import AT_END, FOUND, Area
from homing.records import Record
from tests.programs.build import build
from tests.python.conftest import compile_c
from tests.python.test_preloads import find
from tests.python.test_programs import LIBRARY, MECHANISMS, assert_worked, did, records, run
from tests.rotation import in_rotation

MIB = 1 << 20
#: What the rows of tests/programs/small_blocks.c are in all.
ROWS = 2 * 1024 * 1024 * 8
ALLOCATORS = ("glibc", "jemalloc", "tcmalloc", "mimalloc")


def preloads(allocator: str) -> tuple[str, str]:
    """LD_PRELOAD without homing and with it."""
    if allocator == "glibc":
        return "", str(LIBRARY)
    other = str(find(allocator))
    return other, f"{LIBRARY}:{other}"


def watch(
    command: list[str | Path], folder: Path, allocator: str = "glibc", mechanism: str = "windows"
) -> Record:
    """The record of a run that ended as it does without homing."""
    alone, with_homing = preloads(allocator)
    plain, _ = run(command, {"LD_PRELOAD": alone}, folder)
    assert plain.status == 0, plain
    extra = {**MECHANISMS[mechanism], "LD_PRELOAD": with_homing, "HOMING_RECORD": str(folder / "%p.homing")}
    outcome, errors = run(command, extra, folder)
    assert outcome == plain, errors[-2000:]
    found = records(folder)
    assert_worked(found, mechanism)
    return found[0]


def of_kind(record: Record, kind: str) -> list[Area]:
    return [area for area in record.areas if area.kind == kind]


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_rows_are_watched_in_any_allocators_memory(allocator: str, tmp_path: Path) -> None:
    # Some .6 s: in a tenth of it the first beliefs may take all the time that learning is given.
    record = watch([build("small_blocks", "gcc"), "rows", "400"], tmp_path, allocator)
    arenas = of_kind(record, "arena")
    assert sum(area.bytes for area in arenas) > 0.9 * ROWS, arenas
    seen = sum(row.total for row in record.references if row.area in {area.id for area in arenas})
    assert seen > 0, did(record)


@pytest.mark.parametrize("frees", [False, True])
def test_memory_whose_rows_are_freed_at_the_end_is_told_of_as_it_lay_before(
    frees: bool, tmp_path: Path
) -> None:
    """A std::vector<std::vector<double>> of main(): what is left of the heap tells nothing of its pages."""
    program = compile_c(
        tmp_path / "freed",
        """
        #include <malloc.h>
        #include <stdio.h>
        #include <stdlib.h>
        enum { ROWS = 1200, N = 640, STEPS = 60 };
        int main(int argc, char** argv) {
            (void)argv;
            double* rows[ROWS];
            for (int i = 0; i < ROWS; ++i) {
                rows[i] = malloc(N * sizeof(double));
                for (int j = 0; j < N; ++j) rows[i][j] = 1;
            }
            for (int step = 0; step < STEPS; ++step) {
        #pragma omp parallel for
                for (int i = 0; i < ROWS; ++i)
                    for (int j = 0; j < N; ++j) rows[i][j] += 1;
            }
            printf("%g\\n", rows[ROWS - 1][0]);
            for (int i = ROWS - 1; i >= 0 && argc > 1; --i) free(rows[i]);
            malloc_trim(0); // as free() does where they are the heap's end
        }
        """,
        "-fopenmp",
    )
    record = watch([program, *(["free"] if frees else [])], tmp_path)
    (arena,) = of_kind(record, "arena")
    pages = {one.when: one.present for one in record.placements if one.area == arena.id}
    assert pages[FOUND] > 1000
    assert (AT_END in pages) != frees, pages
    assert (arena.id in record.area_ends) == frees


@pytest.mark.parametrize(
    ("allocator", "how"), in_rotation(list(ALLOCATORS[1:]), ["churn", "trim", "streams"])
)
def test_small_blocks_come_and_go_in_any_allocators_memory(allocator: str, how: str, tmp_path: Path) -> None:
    watch([build("small_blocks", "gcc"), how], tmp_path, allocator, "every-region")


def test_memory_that_the_program_maps_is_watched(tmp_path: Path) -> None:
    record = watch([build("small_blocks", "gcc"), "mapped"], tmp_path)
    assert any(area.bytes >= 8 * MIB for area in of_kind(record, "mapping")), record.areas


def test_temporaries_of_one_place_are_one_area(tmp_path: Path) -> None:
    program = compile_c(
        tmp_path / "temporaries",
        """
        #include <stdio.h>
        #include <stdlib.h>
        enum { N = 1 << 18 };
        static double* temporary(void) { return malloc(N * sizeof(double)); }
        int main(void) {
            double* a = malloc(4 * N * sizeof *a);
            double sum = 0;
            for (long i = 0; i < N; ++i) a[i] = i;
            for (int step = 0; step < 60; ++step) {
                double* b = temporary();
                double* hole = malloc((step % 5 + 1) * 4096L);
                double* c = temporary();
                #pragma omp parallel for
                for (long i = 0; i < N; ++i) b[i] = a[i] + step;
                #pragma omp parallel for
                for (long i = 0; i < N; ++i) c[i] = b[i] * 2;
                #pragma omp parallel for
                for (long i = 0; i < N; ++i) a[i] = c[i] / 2;
                free(step % 2 ? b : c);
                free(hole);
                free(step % 2 ? c : b);
            }
            for (long i = 0; i < N; ++i) sum += a[i];
            printf("%.17g\\n", sum);
        }
        """,
        "-O1",
        "-g",
        "-fopenmp",
    )
    record = watch([program], tmp_path)
    blocks = [area for area in of_kind(record, "heap") if area.bytes == MIB * 2]
    # Two live at one time, of two lines; a block that begins elsewhere in a page may be a page less.
    assert 2 <= len(blocks) <= 6, blocks


def test_what_is_not_watched_has_a_reason(tmp_path: Path) -> None:
    program = compile_c(
        tmp_path / "nodes",
        """
        #include <stdio.h>
        #include <stdlib.h>
        enum { N = 1 << 20 };
        struct node { struct node* next; long value; };
        static double a[N];
        int main(void) {
            struct node* list = NULL;
            for (long i = 0; i < 300000; ++i) {
                struct node* one = malloc(sizeof *one);
                one->next = list;
                one->value = i;
                list = one;
            }
            for (int step = 0; step < 60; ++step) {
                #pragma omp parallel for
                for (long i = 0; i < N; ++i) a[i] += step;
            }
            long sum = 0;
            for (; list; list = list->next) sum += list->value;
            printf("%ld\\n", sum);
        }
        """,
        "-O1",
        "-fopenmp",
    )
    record = watch([program], tmp_path)
    heap = [one for one in record.unwatched if "blocks below 4 KiB" in one.what]
    assert sum(one.bytes for one in heap) > 8 * MIB, record.unwatched
