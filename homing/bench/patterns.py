"""The programs of apps/patterns/ in the guest: what homing makes of distributions that are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from homing.bench import compared
from homing.bench.compared import Case, Comparison, Required
from homing.bench.guest_runs import GuestRuns
from homing.bench.places import find_program, kept_folder
from homing.bench.results import Parts, Results, check_only, content_key
from homing.installation import find_library
from homing.lab.built import find_built

#: The programs, their iterations and further arguments. A run of the small size takes the guest some 15
#: seconds, at a tenth of a second an iteration for 8 MiB; `short` is over before a second is.
PATTERNS: dict[str, tuple[str, ...]] = {
    "block": ("block_gcc", "160"),
    "many_arrays": ("many_arrays_gcc", "400"),
    "rows": ("rows_gcc", "160"),
    "pool": ("pool_gcc", "160"),
    "temporaries": ("temporaries_gcc", "120"),
    "two_grids": ("two_grids_gfortran", "120"),
    "multigrid": ("multigrid_gfortran", "80"),
    "tiles": ("tiles_gfortran", "160"),
    "cyclic": ("cyclic_gcc", "160"),
    "halo": ("halo_gfortran", "160"),
    "csr_lines": ("csr_gcc", "160", "--numbering", "lines"),
    "csr_curve": ("csr_gcc", "160", "--numbering", "curve"),
    "csr_random": ("csr_gcc", "160", "--numbering", "random"),
    "particles": ("particles_gcc", "160"),
    "transpose": ("transpose_gfortran", "120"),
    "wavefront": ("wavefront_gfortran", "240"),
    "dynamic": ("dynamic_gcc", "160", "--schedule", "dynamic"),
    "guided": ("dynamic_gcc", "160", "--schedule", "guided"),
    "tasks": ("tasks_gcc", "160"),
    "giant": ("giant_gfortran", "240"),
    "nested": ("nested_gcc", "120"),
    "half": ("half_gcc", "120"),
    "short": ("block_gcc", "8"),
    "first_phase": ("first_phase_gfortran", "160"),
}
#: Bytes of all arrays, and a factor of the iterations, by the bench's size.
SIZES = {"small": ("8M", 1), "full": ("16M", 2)}
#: Of twenty patterns; those that have several rows count as several.
REQUIRED = {"windows": Required((17, 20), (17, 20)), "hint_faults": Required((19, 20), (1, 1))}
_INITIALISATIONS = ("serial", "parallel")
#: From parallel initialisation the kernel's balancing is shown at one rate, with the knobs found from serial.
_PARALLEL_WAYS = (compared.PLAIN, "windows", compared.BALANCING, "hint_faults")


def cases_of(names: Sequence[str], size: str) -> list[Case]:
    """Both initialisations of these patterns."""
    cases = []
    for name in names:
        program, iterations, *arguments = PATTERNS[name]
        amount, factor = SIZES[size]
        command = (find_program(f"pattern_{program}"), *arguments, "--size", amount)
        command = (*command, "--iterations", str(int(iterations) * (1 if name == "short" else factor)))
        serial = f"{name}.serial"
        cases.append(Case(serial, name, (*command, "--initialise", "serial")))
        parallel = (*command, "--initialise", "parallel")
        cases.append(Case(f"{name}.parallel", name, parallel, _PARALLEL_WAYS, knobs_from=serial))
    return cases


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: patterns, initialisations and ways to measure; what else is kept of these patterns
    is shown."""
    check_only(only, [*PATTERNS, *_INITIALISATIONS, *compared.WAYS])
    names = [name for name in PATTERNS if name in only] or list(PATTERNS)
    ways = [way for way in compared.WAYS if way in only] or compared.WAYS
    kinds = [kind for kind in _INITIALISATIONS if kind in only] or _INITIALISATIONS

    def wanted(case: Case, way: str) -> bool:
        return way in ways and case.name.rpartition(".")[2] in kinds

    comparison = Comparison(cases_of(names, size))
    key = {"size": size, "counter": content_key(str(find_built("libhoming_counter_plugin.so")))}
    parts = Parts(kept_folder() / f"patterns-{size}.json", key)
    if redo:
        again = [step for step in compared.steps_of(comparison.cases) if wanted(step.case, step.way)]
        parts.drop([part for part in parts.names() if compared.is_of(part, again)])
    compared.measure("patterns", comparison, wanted, parts, content_key(find_library()), GuestRuns)
    results = Results(
        "patterns",
        "Patterns of use whose truth is known: remote cache misses in a guest with 4 nodes",
        tell(["patterns"]),
        notes=[*compared.NOTES, "What each pattern is: apps/README.md, and the head of its file."],
    )
    compared.fill(results, comparison, REQUIRED)
    return results
