"""--to upm --phases of the project's own NAS BT and SP: Figures 1 and 2 of Nikolopoulos et al. 2000."""

from __future__ import annotations

import re

import pytest

from homing.translate.translation import Options, translate
from tests.places import TREE

FILES = ("common/app.f90", "nas/common.f90", "nas/flow.f90", "nas/flow_run.f90")


@pytest.mark.parametrize("program", ["bt", "sp"])
def test_z_solve_is_the_phase(program: str) -> None:
    sources = [str(TREE / "apps" / name) for name in (*FILES, f"nas/{program}.f90")]
    result = translate(sources, Options("upm", phases=True))
    text = next(output.text for output in result.outputs if output.path.endswith(f"{program}.f90"))
    found = re.findall(r"call (upmlib_\w+|[xyz]_solve|compute_rhs|add)\b", text)
    assert {"upmlib_init", "upmlib_memrefcnt"} <= set(found)
    steps = found[found.index("compute_rhs") :]
    around = ["upmlib_record", "upmlib_replay", "z_solve", "upmlib_record", "upmlib_undo"]
    assert steps == ["compute_rhs", "x_solve", "y_solve", *around, "add"]
    registered = set(re.findall(r"upmlib_memrefcnt\((\w+)", text))
    assert {"u", "rhs"} <= registered
