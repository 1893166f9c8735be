"""What migration costs with 4 and with 12 threads, measured on this machine (Table 3 has both).

As in the paper: seconds by which the first iteration with migrate-on-next-touch exceeds the later ones;
less by how much it does so without homing. Four nodes are assumed: arming, faults and the handler's decisions
are real, copying is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from homing.bench.lof import paper
from homing.bench.lof.runs import Program, matrix_file
from homing.bench.places import find_program
from homing.bench.programs import execute, parse_output
from homing.bench.results import Row
from homing.errors import UserError
from homing.installation import find_library
from homing.options import load_options

THREADS = (4, 12)
#: Of each kind; the least first and the least later iteration count, since other processes only add to them.
_RUNS = 5
_ITERATIONS = 4
#: Seconds below which the ratio says nothing: iterations differ by as much on a machine that others use, too.
_LEAST = 0.01
_TIMEOUT = 600.0


def measure(program: Program, threads: int, tell: Callable[[str], None]) -> float:
    """Seconds that migration took. UserError where a run fails."""
    command = [find_program(program.file), *program.arguments]
    if program.unknowns:
        command += ["--matrix", str(matrix_file(program.unknowns, "natural", tell))]
    command += ["--iterations", str(_ITERATIONS), "--initialise", "serial", "--mark-iterations"]
    options = {option.env for option in load_options()}
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OMP_") and name not in options
    }
    plain |= {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive", "OMP_PROC_BIND": "spread"}
    moving = plain | {
        "LD_PRELOAD": str(find_library()),
        "HOMING_MECHANISM": "next-touch",
        "HOMING_ASSUME_NODES": "4",
    }
    pairs = [(_iterations(command, moving), _iterations(command, plain)) for _ in range(_RUNS)]
    return _excess([one for one, _ in pairs]) - _excess([other for _, other in pairs])


def _excess(runs: list[list[float]]) -> float:
    """Seconds of the first iteration over the later ones, undisturbed."""
    return min(one[0] for one in runs) - min(min(one[1:]) for one in runs)


def _iterations(command: list[str], variables: Mapping[str, str]) -> list[float]:
    """Seconds of each iteration of a run."""
    output = parse_output(execute(command, variables, _TIMEOUT).stdout)
    stated = output.fields.get("time iterations from 1", "").split()
    if len(stated) < _ITERATIONS:
        raise UserError(f"{command[0]}: no times of iterations", 1)
    return list(map(float, stated))


def table(measured: Mapping[str, Mapping[int, float]]) -> tuple[list[Row], str]:
    """Rows and text of what was measured: by program, and by threads."""
    rows = []
    lines = [
        "Table 3 by threads, measured on this machine: seconds of migration, 4 nodes assumed (arming and",
        "faults, no copying), and 12 threads relative to 4 (paper in parentheses)",
    ]
    for program, found in measured.items():
        four, twelve = (found[threads] for threads in THREADS)
        known = paper.MIGRATION[program]["t12"] / paper.MIGRATION[program]["t4"]
        for threads in THREADS:
            name = f"table3.{program}.measured.t{threads}"
            rows.append(Row(name, found[threads], "s, arming and faults here"))
        cells = "".join(f"{threads:>4} threads {found[threads]:6.3f}" for threads in THREADS)
        beside = f"  too little ({known:.2f})"
        if four > _LEAST:
            name = f"table3.{program}.measured.ratio"
            rows.append(Row(name, twelve / four, "12 threads to 4", "arming and faults here", known))
            beside = f"{twelve / four:12.2f} ({known:.2f})"
        lines.append(f"  {paper.TITLES[program]:<8}{cells}{beside}")
    return rows, "\n".join(lines)
