"""The hooks: by which ways homing gets into a program, and where it must step aside.

All six compilers, both runtimes however they arrive, programs that homing cannot or must not help, and the
launcher.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from homing.records import Record, Region
from tests.compilers import why_not
from tests.patience import PATIENCE
from tests.programs.build import OUTPUT, VARIANTS, CannotBuild, build, second_libgomp
from tests.python.test_programs import (
    LIBRARY,
    MECHANISMS,
    TREE,
    Outcome,
    assert_worked,
    did,
    environment,
    records,
    run,
)

CORE_REGIONS = 4  # of core_step() in tests/programs/core.h
LIBRARY_REGIONS = 3  # of library_step() in tests/programs/library.c


def built(name: str, variant: str) -> Path:
    if VARIANTS[variant].compiler is None:
        pytest.skip(why_not(VARIANTS[variant].compilers[0]) or "no compiler")
    try:
        return build(name, variant)
    except CannotBuild as error:
        pytest.fail(str(error))


def preloaded(folder: Path, mechanism: str = "windows", **extra: str) -> dict[str, str]:
    return {
        **MECHANISMS[mechanism],
        "LD_PRELOAD": str(LIBRARY),
        "HOMING_RECORD": str(folder / "%p.homing"),
        **extra,
    }


def both(
    command: list[str | Path], folder: Path, extra: dict[str, str] | None = None, mechanism: str = "windows"
) -> tuple[Outcome, list[Record]]:
    """Run with and without homing, compare, and give the outcome and the records."""
    extra = extra or {}
    plain, _ = run(command, extra, folder)
    with_homing = {**extra, **preloaded(folder, mechanism)}
    if "LD_PRELOAD" in extra:
        with_homing["LD_PRELOAD"] = f"{LIBRARY}:{extra['LD_PRELOAD']}"
    outcome, errors = run(command, with_homing, folder)
    found = records(folder)
    told = "\n".join(did(record) for record in found)
    assert outcome == plain, f"with homing: {outcome}\nwithout: {plain}\nstderr: {errors[-2000:]}\n{told}"
    return outcome, found


def launcher(
    arguments: list[str | Path], folder: Path, extra: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`homing run ARGUMENTS`, pretending four nodes."""
    return subprocess.run(
        [sys.executable, "-m", "homing", "run", *arguments],
        env=environment(
            {
                "PYTHONPATH": str(TREE),
                "HOMING_LIBRARY": str(LIBRARY),
                "HOMING_ASSUME_NODES": "4",
                **(extra or {}),
            }
        ),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def repeated(record: Record) -> list[Region]:
    """The regions that came again: entries are counted until homing is at rest, which may be as soon as the
    second iteration has shown the period."""
    return [region for region in record.regions if region.count > 1]


COMPILED = [
    ("regions", "gcc"),
    ("regions", "clang"),
    ("regions", "g++"),
    ("regions", "clang++"),
    ("regions", "gcc-nopie"),
    ("regions", "clang-nopie"),
    ("regions", "clang-O3"),
    ("regions", "gcc-O3-lto"),
    ("regions", "gcc-on-libomp"),
]


@pytest.mark.parametrize(("program", "variant"), COMPILED, ids=lambda value: value)
def test_a_region_is_its_outlined_function(program: str, variant: str, tmp_path: Path) -> None:
    """Also where the compiler unrolled or copied the loop around it: as many ids as outlined functions, each
    entered as often as the others."""
    _, found = both([built(program, variant)], tmp_path)
    assert_worked(found, "windows")
    counted = repeated(found[0])
    assert len(counted) == CORE_REGIONS, counted
    counts = [region.count for region in counted]
    assert max(counts) - min(counts) <= 1 and max(counts) <= 40, counted
    assert all("omp" in region.symbol for region in counted if region.symbol), counted


@pytest.mark.parametrize("variant", ["gfortran", "flang"])
def test_fortran(variant: str, tmp_path: Path) -> None:
    """Module arrays, COMMON blocks and SAVE arrays are areas by their names."""
    _, found = both([built("arrays", variant)], tmp_path)
    assert_worked(found, "windows")
    names = " ".join(area.name.lower() for area in found[0].areas)
    for name in ("density", "velocity", "blk", "history"):
        assert name in names, names
    assert any(area.kind == "heap" for area in found[0].areas), names


@pytest.mark.parametrize("variant", ["gcc-stripped", "clang-stripped"])
def test_stripped(variant: str, tmp_path: Path) -> None:
    """Without symbols the static arrays are watched as segments."""
    _, found = both([built("regions", variant)], tmp_path)
    assert_worked(found, "windows")
    assert {"segment", "heap"} <= {area.kind for area in found[0].areas}, found[0].areas


@pytest.mark.parametrize("variant", ["gcc-library", "clang-library"])
@pytest.mark.parametrize("how", ["once", "again", "thread"])
def test_runtime_arrives_by_dlopen(how: str, variant: str, tmp_path: Path) -> None:
    """The executable has no OpenMP; libgomp or libomp comes with a library that is loaded RTLD_LOCAL, and may
    go again."""
    _, found = both([built("plugin_host", "plain"), how, built("library", variant)], tmp_path)
    assert_worked(found, "windows")


def test_two_runtimes_in_one_process(tmp_path: Path) -> None:
    libraries = [built("library", variant) for variant in ("gcc-library", "clang-library")]
    _, found = both([built("plugin_host", "plain"), "both", *libraries], tmp_path)
    assert_worked(found, "windows")
    assert len(repeated(found[0])) == 2 * LIBRARY_REGIONS, found[0].regions


def test_two_libgomps_in_one_process(tmp_path: Path) -> None:
    """As with Python wheels that bring their own libgomp under another name."""
    library = built("library", "gcc-library")
    try:
        second_libgomp(tmp_path)
    except CannotBuild as error:
        pytest.skip(str(error))
    copy = tmp_path / "second.so"
    copy.write_bytes(library.read_bytes().replace(b"libgomp.so.1\0", b"libgomq.so.1\0"))
    extra = {"LD_LIBRARY_PATH": str(tmp_path)}
    _, found = both([built("plugin_host", "plain"), "both", library, copy], tmp_path, extra)
    assert_worked(found, "windows")
    assert len(repeated(found[0])) == 2 * LIBRARY_REGIONS, found[0].regions
    maps = subprocess.run(["ldd", copy], env=environment(extra), capture_output=True, text=True).stdout
    assert "libgomq.so.1 => " + str(tmp_path) in maps, maps


def test_linked_without_libgomp(tmp_path: Path) -> None:
    """Linkers leave libgomp out of a program that needs nothing of it but what this library interposes."""
    source = tmp_path / "one.c"
    source.write_text(
        "int main(void) {\n    int n = 0;\n#pragma omp parallel\n    n = 1;\n    return n - 1;\n}\n"
    )
    command = [
        "gcc",
        "-fopenmp",
        source,
        LIBRARY,
        f"-Wl,-rpath,{Path(LIBRARY).parent}",
        "-o",
        tmp_path / "one",
    ]
    subprocess.run(command, check=True, timeout=PATIENCE)
    needed = subprocess.run(["readelf", "-d", tmp_path / "one"], capture_output=True, text=True, check=True)
    assert "libgomp" not in needed.stdout, "else it shows nothing"
    subprocess.run([tmp_path / "one"], check=True, timeout=PATIENCE)


def test_runtime_in_a_namespace_of_its_own(tmp_path: Path) -> None:
    """dlmopen: nothing preloaded is seen there, and nothing may break."""
    both([built("plugin_host", "plain"), "namespace", built("library", "gcc-library")], tmp_path)


@pytest.mark.parametrize("variant", ["gcc", "clang"])
def test_regions_before_and_after_main(variant: str, tmp_path: Path) -> None:
    """A linked library's constructor runs regions before homing's own constructor has run, its destructor
    after."""
    library = built("library_early", f"{variant}-library")
    program = tmp_path / "user"
    compiler = VARIANTS[variant].compiler
    assert compiler
    source = TREE / "tests" / "programs" / "library_user.c"
    subprocess.run(
        [compiler, "-g", source, library, "-o", program, f"-Wl,-rpath,{library.parent}"],
        check=True,
        capture_output=True,
    )
    outcome, found = both([program], tmp_path)
    assert outcome.stdout.count("\n") == 3, outcome
    assert_worked(found, "windows")


@pytest.mark.parametrize("mechanism", ["windows", "every-region"])
def test_a_library_whose_functions_have_names_of_the_c_librarys(mechanism: str, tmp_path: Path) -> None:
    library = built("library_names", "gcc-library")
    program = tmp_path / "user"
    source = TREE / "tests" / "programs" / "names_user.c"
    flags = ["-g", "-O1", "-fopenmp", "-fno-builtin", "-Wno-builtin-declaration-mismatch"]
    subprocess.run(
        ["gcc", *flags, source, library, "-o", program, f"-Wl,-rpath,{library.parent}", "-lm"],
        check=True,
        capture_output=True,
    )
    _, found = both([program], tmp_path, mechanism=mechanism)
    assert_worked(found, mechanism)


def test_python_loads_a_library_by_ctypes(tmp_path: Path) -> None:
    script = TREE / "tests" / "programs" / "use_library.py"
    outcome, found = both([sys.executable, script, built("library", "gcc-library")], tmp_path)
    assert outcome.status == 6
    assert_worked(found, "windows")


def test_own_ompt_tool_keeps_working(tmp_path: Path) -> None:
    outcome, found = both([built("own_tool", "clang")], tmp_path)
    assert f"my tool: {40 * CORE_REGIONS}" in outcome.stdout
    assert_worked(found, "windows")


@pytest.mark.parametrize("way", ["OMP_TOOL_LIBRARIES", "preloaded behind homing", "preloaded before homing"])
def test_a_users_ompt_tool_sees_what_it_sees_without_homing(way: str, tmp_path: Path) -> None:
    """The runtime has one seat for a tool. The tool hears of every region, and of its call in the program."""
    program, tool = built("regions", "clang"), built("tool_library", "clang-library")
    way_in = "OMP_TOOL_LIBRARIES" if way == "OMP_TOOL_LIBRARIES" else "LD_PRELOAD"
    plain, _ = run([program], {way_in: str(tool)}, tmp_path)
    regions = 40 * CORE_REGIONS
    assert f"tool: {regions} regions, {regions} ended, {regions} called by the program" in plain.stdout
    extra = preloaded(tmp_path)
    if way == "OMP_TOOL_LIBRARIES":
        extra[way] = str(tool)
    else:
        order = [str(LIBRARY), str(tool)]
        extra["LD_PRELOAD"] = ":".join(order if "behind" in way else reversed(order))
    outcome, _ = run([program], extra, tmp_path)
    assert outcome == plain
    found = records(tmp_path)
    assert_worked(found, "windows")
    assert any("another OMPT tool" in message.text for message in found[0].messages), found[0].messages


def test_without_ompt(tmp_path: Path) -> None:
    """Regions are seen as they are where the user switched tools off."""
    _, found = both([built("regions", "clang")], tmp_path, {"OMP_TOOL": "disabled"})
    assert_worked(found, "windows")
    assert len(repeated(found[0])) == CORE_REGIONS, found[0].regions
    assert not any("OMPT" in message.text for message in found[0].messages), found[0].messages


def test_a_runtime_linked_into_the_program(tmp_path: Path) -> None:
    """Nothing can be put before its entry points: OMPT tells of the regions."""
    _, found = both([built("static_runtime", "plain")], tmp_path)
    assert_worked(found, "windows")
    counts = [region.count for region in repeated(found[0])]
    assert len(counts) == 3 and max(counts) - min(counts) <= 1, counts


@pytest.mark.parametrize("table", ["gnu", "sysv"])
def test_beside_a_library_that_the_user_preloads(table: str, tmp_path: Path) -> None:
    """Whatever table of its functions the linker has written."""
    library = tmp_path / "user_preload.so"
    source = TREE / "tests" / "programs" / "user_preload.c"
    command = ["gcc", "-shared", "-fPIC", "-D_GNU_SOURCE", f"-Wl,--hash-style={table}", source, "-o", library]
    subprocess.run(command, check=True, capture_output=True)
    extra = {"LD_PRELOAD": str(library)}
    outcome, found = both([built("regions", "gcc")], tmp_path, extra)
    assert "not used" not in outcome.stdout
    assert_worked(found, "windows")
    # and in the other order
    first = {**preloaded(tmp_path), "LD_PRELOAD": f"{extra['LD_PRELOAD']}:{LIBRARY}"}
    assert run([built("regions", "gcc")], first, tmp_path)[0] == outcome


@pytest.mark.parametrize("variant", ["gcc", "clang"])
def test_started_with_all_streams_closed(variant: str, tmp_path: Path) -> None:
    """The numbers 0, 1 and 2 are the program's, and homing writes nothing into its files."""
    program = built("closed", variant)
    texts = []
    for extra in ({}, preloaded(tmp_path)):
        result = tmp_path / "result"
        run(["sh", "-c", f"exec '{program}' '{result}' <&- >&- 2>&-"], extra, tmp_path)
        texts.append(result.read_text())
    assert texts[0] == texts[1] and texts[0].startswith("0 1 2 "), texts
    assert_worked(records(tmp_path), "windows")


@pytest.mark.parametrize(
    "policy", [["--interleave=all"], ["--membind=0"], ["--preferred=0"], ["--physcpubind=0"]]
)
def test_under_numactl(policy: list[str], tmp_path: Path) -> None:
    if not shutil.which("numactl"):
        pytest.skip("no numactl here")
    _, found = both(["numactl", *policy, built("regions", "gcc")], tmp_path)
    assert_worked(found, "windows")


def test_a_script_of_several_programs(tmp_path: Path) -> None:
    folder = OUTPUT / "gcc"
    for name in ("no_openmp", "regions", "filter", "crash", "leave"):
        built(name, "gcc")
    outcome, found = both([TREE / "tests" / "programs" / "several.sh", folder], tmp_path)
    assert outcome.status == 7 and "crash 139" in outcome.stdout
    assert len([record for record in found if record.iterations]) >= 6, [record.program for record in found]


LIMITS = [
    "ulimit -n 4",
    "ulimit -f 0",
    "ulimit -v 700000",
    "ulimit -s 512",
    "ulimit -l 0",
    "umask 777; cd /",
    "cd /",
]


@pytest.mark.parametrize("limit", LIMITS)
def test_started_under_a_limit(limit: str, tmp_path: Path) -> None:
    program = built("regions", "gcc")
    command: list[str | Path] = ["sh", "-c", f"{limit}; exec '{program}'"]
    plain, _ = run(command, {}, tmp_path)
    assert plain.status == 0, plain
    outcome, _ = run(command, preloaded(tmp_path), tmp_path)
    assert outcome == plain


@pytest.mark.parametrize("name", ["/dev/null/no/%p", "/proc/%p", "", "%p%r%%", "/dev/full", "."])
def test_without_a_place_for_its_record(name: str, tmp_path: Path) -> None:
    program = built("regions", "clang")
    plain, _ = run([program], {}, tmp_path)
    outcome, _ = run([program], preloaded(tmp_path, HOMING_RECORD=name), tmp_path)
    assert outcome == plain


# -- where homing does nothing
# ---------------------------------------------------------------------------------------


def test_off_from_inside(tmp_path: Path) -> None:
    plain, _ = run([built("regions", "gcc")], {}, tmp_path)
    outcome, errors = run([built("regions", "gcc")], preloaded(tmp_path, HOMING="off"), tmp_path)
    assert outcome == plain and errors == ""
    assert not any(record.iterations for record in records(tmp_path))


@pytest.mark.parametrize(("only", "works"), [("regions", True), ("nested", False)])
def test_only_one_program(only: str, works: bool, tmp_path: Path) -> None:
    _, _ = run([built("regions", "gcc")], preloaded(tmp_path, HOMING_ONLY=only), tmp_path)
    assert any(record.iterations for record in records(tmp_path)) == works


@pytest.mark.parametrize("name", ["link", "regions", "path", "path of the link"])
def test_only_a_program_of_two_names(name: str, tmp_path: Path) -> None:
    """What was typed, what the summary calls it, and both as paths."""
    program, link = built("regions", "gcc"), tmp_path / "link"
    link.symlink_to(program)
    only = {"path": str(program), "path of the link": str(link)}.get(name, name)
    _, _ = run([link], preloaded(tmp_path, HOMING_ONLY=only), tmp_path)
    assert any(record.iterations for record in records(tmp_path))


def test_a_process_without_openmp_is_left_alone(tmp_path: Path) -> None:
    outcome, errors = run([built("no_openmp", "gcc")], preloaded(tmp_path), tmp_path)
    assert outcome.status == 4 and errors == ""
    assert not any(record.iterations or record.areas for record in records(tmp_path))


ASIDE = [
    ("regions", "gcc-static", "static"),
    ("regions", "gcc-static-pie", "static"),
    ("regions", "gcc-asan", "AddressSanitizer"),
    ("regions", "clang-asan", "AddressSanitizer"),
    ("regions", "gcc-tsan", "ThreadSanitizer"),
    ("no_openmp", "gcc", "no process reported a parallel region"),
]


@pytest.mark.parametrize(("program", "variant", "reason"), ASIDE, ids=[variant for _, variant, _ in ASIDE])
def test_the_launcher_says_why_it_stepped_aside(
    program: str, variant: str, reason: str, tmp_path: Path
) -> None:
    """The program runs as without us; one line at the end says why nothing was done."""
    path = built(program, variant)
    plain, _ = run([path], {}, tmp_path)
    ended = launcher(["--", path], tmp_path)
    assert (ended.returncode, ended.stdout) == (plain.status, plain.stdout), ended.stderr
    lines = [line for line in ended.stderr.splitlines() if line.startswith("homing")]
    assert len(lines) == 1 and reason in lines[0], ended.stderr


@pytest.mark.parametrize("variant", ["gcc-asan", "clang-asan", "gcc-tsan"])
def test_a_sanitized_program_in_a_script(variant: str, tmp_path: Path) -> None:
    """The launcher sees only the shell: the library itself has to step aside."""
    path = built("regions", variant)
    plain, _ = run([path], {}, tmp_path)
    ended = launcher(["--", "sh", "-c", f"'{path}'; exit 9"], tmp_path)
    assert (ended.returncode, ended.stdout) == (9, plain.stdout), ended.stderr


# -- the launcher
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "arguments", "variant"),
    [
        ("regions", [], "gcc"),
        ("regions", [], "clang"),
        ("leave", ["exit"], "clang"),
        ("crash", ["null"], "gcc"),
        ("crash", ["abort"], "clang"),
        ("descriptors", ["number"], "gcc"),
        ("environment", ["twice"], "gcc"),
        ("fortran_tasks", [], "flang"),
        ("fortran_io", [], "gfortran"),
    ],
)
def test_the_launcher_changes_nothing(
    program: str, arguments: list[str], variant: str, tmp_path: Path
) -> None:
    path = built(program, variant)
    plain, _ = run([path, *arguments], {}, tmp_path)
    ended = launcher(["--json", "out.json", "--", path, *arguments], tmp_path)
    assert (ended.returncode, ended.stdout) == (plain.status, plain.stdout), ended.stderr
    json.loads((tmp_path / "out.json").read_text())


def test_the_launcher_and_the_script(tmp_path: Path) -> None:
    for name in ("no_openmp", "regions", "filter", "crash", "leave"):
        built(name, "gcc")
    command: list[str | Path] = [TREE / "tests" / "programs" / "several.sh", OUTPUT / "gcc"]
    plain, _ = run(command, {}, tmp_path)
    ended = launcher(["--only", "leave", "--record", "%p.homing", "--", *command], tmp_path)
    assert (ended.returncode, ended.stdout) == (plain.status, plain.stdout), ended.stderr
    assert {Path(record.program).name for record in records(tmp_path) if record.iterations} == {"leave"}
