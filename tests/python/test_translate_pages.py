"""--to pages: arrays stay where they are, in modules, COMMON blocks, with SAVE, or behind a pointer."""

from __future__ import annotations

import pytest

from tests.python.translate_programs import PROGRAMS, Workshop, run_command


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("name", ["kept_arrays.f90", "kept_common.f", "fixed_home.f90", "fixed_home.c"])
def test_arrays_stay_where_they_are(workshop: Workshop, name: str) -> None:
    source = PROGRAMS / name
    expected = workshop.printed(source)
    made, _ = workshop.translated(source, "pages")
    for threads in ("1", "4"):
        assert run_command([made], workshop.folder, OMP_NUM_THREADS=threads) == expected
