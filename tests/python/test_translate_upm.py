"""--to upm: hot arrays, the time loop through calls, and the calls of Figures 1 and 2 where they belong."""

from __future__ import annotations

import re

from homing.translate.translation import Options, translate
from tests.python.translate_programs import PROGRAMS

SOURCE = PROGRAMS / "phases.f90"


def calls(text: str) -> list[str]:
    """The calls of the main program in their order."""
    body = text[: text.index("contains")]
    return re.findall(r"call (\w+)", body)


def test_iterative_as_in_figure_1() -> None:
    result = translate([str(SOURCE)], Options("upm"))
    expected = (
        "upmlib_init upmlib_memrefcnt upmlib_memrefcnt x_solve y_solve z_solve add upmlib_migrate_memory"
    )
    assert calls(result.outputs[0].text) == expected.split()
    assert sum("hot: " in line for line in result.report) == 2


def test_phases_as_in_figure_2() -> None:
    result = translate([str(SOURCE)], Options("upm", phases=True))
    around = ["upmlib_record", "upmlib_replay", "z_solve", "upmlib_record", "upmlib_undo"]
    head = ["upmlib_init", "upmlib_memrefcnt", "upmlib_memrefcnt"]
    assert calls(result.outputs[0].text) == [*head, "x_solve", "y_solve", *around, "add"]
    assert any("move nothing yet" in line for line in result.report)
