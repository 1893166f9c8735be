"""Names of areas from DWARF: programs of each compiler, and what is said where DWARF is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from homing.record_rows import Area
from homing.report.debug_facts import Member
from homing.report.dwarf import ObjectInfo
from homing.report.names import Namer
from homing.report.sources import Sources
from homing.report.symbols import readable_symbol
from tests.patience import PATIENCE

C_PROGRAM = """\
#include <stdlib.h>
static double table[100000];
struct pair { double a[1000]; int b; } many[50];
double *volatile x;
__attribute__((noinline)) void allocate(int n) {
    // A comment, so that the line below is line 7.
    x = malloc(n * sizeof *x); // not part of the name
    static float inner[70000];
    inner[n] = table[n] = many[3].b = n;
    x[1] = inner[n] + table[2 * n];
}
int main(int argc, char **argv) { allocate(argc + 1000); return x[1] == argc; }
"""

FORTRAN_PROGRAM = """\
module fields
  real(8) :: grid(200,300)
end module
subroutine work
  use fields
  common /blk/ u(40000), v(50000), n
  real(8) :: u, v
  real(8), save :: w(60000)
  real(8), allocatable :: dynamic(:,:)
  u(1) = 1; v(2) = 2; w(3) = 3; n = 1
  grid(1,1) = u(1) + w(3)
  allocate(dynamic(1000,1000))
  dynamic = u(1)
  print *, u(1), v(2), w(3), grid(1,1), n, dynamic(5,5)
end subroutine
program p
  call work
end program
"""

#: size_of comes after main, and is inlined into the line before the allocation.
INLINED_C = """\
#include <stdlib.h>
double *volatile x;
static inline int size_of(char **words);
int main(int count, char **words) {
    int size = size_of(words);
    double *vector = malloc(8ul * 4000000);
    for (int i = 0; i < 4000000; i++) vector[i] = size;
    x = vector;
    return x[3] != size;
}
static inline int size_of(char **words) {
    int result = strtol(words[0], NULL, 10);
    return result; // has nothing to do with the allocation
}
"""

CONTAINERS = """\
#include <memory>
#include <vector>
struct Field {
    explicit Field(std::size_t n)
        : data(n, 1.0) {}
    std::vector<double> data;
};
double sum = 0;
int main(int count, char **) {
    std::vector<double> a(1000 * count);
    Field field(2000 * count);
    auto owned = std::make_unique<double[]>(3000 * count);
    for (double value : a) sum += value;
    for (double value : field.data) sum += value;
    return sum + owned[7] == 3;
}
"""


def build(folder: Path, source: str, name: str, compiler: str, *flags: str) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not here")
    code = folder / name
    code.write_text(source)
    program = folder / f"{compiler}.out"
    subprocess.run(
        [compiler, *flags, str(code), "-o", str(program)], check=True, cwd=folder, timeout=PATIENCE
    )
    return program


def return_addresses(program: Path, callee: str) -> list[int]:
    """File addresses after each call of `callee` (a pattern)."""
    lines = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(program)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = []
    for at, line in enumerate(lines):
        # A call that does not return may be the last instruction of its function.
        if re.search(rf"\bcallq?\b.*<{callee}", line) and ":" in lines[at + 1]:
            found.append(int(lines[at + 1].split(":")[0], 16))
    assert found, f"no call of {callee}"
    return found


def heap_area(program: Path, *offsets: int, name: str = "heap@x+0x1") -> Area:
    return Area(
        1, 0, 1 << 20, "heap", name, "", 4096, 0.0, tuple((str(program), offset) for offset in offsets)
    )


def static_area(program: Path, name: str) -> Area:
    return Area(1, 0, 1 << 20, "static", name, str(program), 4096, 0.0, ())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("names")


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_c(compiler: str, version: str, level: str, folder: Path) -> None:
    program = build(folder, C_PROGRAM, "c.c", compiler, "-g", version, level)
    namer = Namer()
    names = [namer.name(heap_area(program, address)) for address in return_addresses(program, "malloc@plt")]
    assert ("x (c.c:7)", 7) in [(name.title, name.line) for name in names]
    assert any(name.function == "allocate" for name in names)
    lines = {"table": 2, "many": 3, "inner": 8}
    for array, line in lines.items():
        found = namer.name(static_area(program, array))
        title = f"{array} (c.c:{line})"
        assert (found.title, found.line, os.path.basename(found.file)) == (title, line, "c.c")
    assert namer.remarks() == []


@pytest.mark.parametrize("flags", [["-no-pie"], ["-pie", "-fPIE"]])
def test_offsets_count_from_the_first_mapped_page(flags: list[str], folder: Path) -> None:
    """A record's offsets are what dladdr gives; a program that is not PIE is linked at an address of its
    own."""
    program = build(folder, C_PROGRAM, "c.c", "gcc", "-g", "-O1", *flags)
    base = ObjectInfo(str(program)).base
    assert (base != 0) == (flags == ["-no-pie"])
    offsets = [address - base for address in return_addresses(program, "malloc@plt")]
    assert Namer().name(heap_area(program, offsets[0])).line == 7


def test_gfortran(folder: Path) -> None:
    program = build(folder, FORTRAN_PROGRAM, "f.f90", "gfortran", "-g", "-O1")
    namer = Namer()
    block = namer.name(static_area(program, "/blk/"))
    assert (block.line, block.function) == (6, "work")
    assert block.members == (Member("u", 0, 320000), Member("v", 320000, 400000), Member("n", 720000, 4))
    assert namer.name(static_area(program, "fields::grid")).line == 2
    assert namer.name(static_area(program, "w")).line == 8
    titles = [
        namer.name(heap_area(program, address)).title for address in return_addresses(program, "malloc@plt")
    ]
    assert "dynamic (f.f90:12)" in titles
    # As the program says it, not as the symbol: work_.
    info = ObjectInfo(str(program))
    places = [info.place(address - 1) for address in return_addresses(program, "malloc@plt")]
    assert {place.function for place in places if place is not None and place.line == 12} == {"work"}


def test_flang_names_the_first_frame_with_a_line(folder: Path) -> None:
    """flang allocates in its run-time library, which has no source lines: the caller counts."""
    program = build(folder, FORTRAN_PROGRAM, "f.f90", "flang-new-19", "-g", "-O1")
    info = ObjectInfo(str(program))
    places = {address: info.place(address - 1) for address in return_addresses(program, "malloc@plt")}
    inside = [address for address, place in places.items() if place is not None and not place.line]
    own = [address for address, place in places.items() if place is not None and place.line == 12]
    assert Namer().name(heap_area(program, inside[0], own[0])).line == 12
    assert Namer().name(static_area(program, "fields::grid")).line == 2
    assert Namer().name(static_area(program, "work::w")).line == 8


def line_table(program: Path, addresses: list[int]) -> dict[int, list[tuple[str, int]]]:
    """(file, line) of instructions as binutils tells them: where they come from, and the calls around it that
    were inlined, outwards."""
    command = ["addr2line", "-i", "-a", "-e", str(program), *map(hex, addresses)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[int, list[tuple[str, int]]] = {}
    for line in text.splitlines():
        if line.startswith("0x"):
            places = found.setdefault(int(line, 16), [])
        else:
            file, _, number = line.split(" ")[0].rpartition(":")
            places.append((os.path.basename(file), int(number) if number.isdigit() else 0))
    return found


@pytest.mark.parametrize(
    ("source", "name", "compiler"),
    [(INLINED_C, "i.c", "gcc"), (INLINED_C, "i.c", "clang-19"), (CONTAINERS, "i.cpp", "g++")],
)
@pytest.mark.parametrize("flags", [["-gdwarf-4"], ["-gdwarf-5"], ["-g", "-no-pie", "-ffunction-sections"]])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_every_call_has_the_lines_that_binutils_tell(
    source: str, name: str, compiler: str, flags: list[str], level: str, folder: Path
) -> None:
    program = build(folder, source, name, compiler, level, *flags)
    info = ObjectInfo(str(program))
    calls = [address - 1 for address in return_addresses(program, ".*@plt")]
    expected = line_table(program, calls)
    assert any(name in file for places in expected.values() for file, _ in places)
    for address in calls:
        found = [(os.path.basename(one.file), one.line) for one in info.places_at(address - info.base)]
        assert [place for place in found if place[1]] == [place for place in expected[address] if place[1]]


def test_what_is_inlined_before_an_allocation_does_not_take_its_line(folder: Path) -> None:
    """Several rows of a line table have one address: the last tells of the instruction."""
    program = build(folder, INLINED_C, "i.c", "gcc", "-g", "-O2")
    allocated = Namer().name(heap_area(program, *return_addresses(program, "malloc@plt")))
    assert (allocated.line, allocated.text) == (6, "double *vector = malloc(8ul * 4000000);")


@pytest.mark.parametrize("compiler", ["g++", "clang++-19"])
@pytest.mark.parametrize("flags", [["-no-pie"], ["-pie", "-fPIE"]])
@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
def test_containers_are_named_by_the_line_that_makes_them(
    compiler: str, flags: list[str], version: str, folder: Path
) -> None:
    """Their allocators are inlined; the first call that is not in their headers counts."""
    program = build(folder, CONTAINERS, "i.cpp", compiler, version, "-O2", *flags)
    base = ObjectInfo(str(program)).base
    calls = return_addresses(program, "_Zn[wa]m@plt")
    names = [Namer().name(heap_area(program, address - base)) for address in calls]
    assert [(name.line, name.function) for name in names] == [(10, "main"), (5, "Field"), (12, "main")]
    assert [name.title for name in names] == [
        "a (i.cpp:10)",
        "field.data: Field (i.cpp:5) from main (i.cpp:11)",
        "owned (i.cpp:12)",
    ]


def test_separate_debug_files(folder: Path) -> None:
    program = build(folder, C_PROGRAM, "c.c", "gcc", "-g", "-O1", "-gz")
    addresses = return_addresses(program, "malloc@plt")
    debug = folder / "split.debug"
    stripped = folder / "split"
    subprocess.run(["objcopy", "--only-keep-debug", str(program), str(debug)], check=True)
    subprocess.run(
        ["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", str(program), str(stripped)],
        check=True,
        cwd=folder,
    )
    assert Namer().name(heap_area(stripped, addresses[0])).line == 7
    assert Namer().name(static_area(stripped, "table")).line == 2


def test_without_debug_information(folder: Path) -> None:
    program = build(folder, C_PROGRAM, "c.c", "gcc", "-O1", "-s")
    namer = Namer()
    assert namer.name(heap_area(program, 0x1234)).title == "heap@x+0x1"
    assert namer.name(static_area(program, "table")).title == "table"
    assert namer.remarks() == [
        "gcc.out: no source lines in it; compile with -g to see names of blocks and members"
    ]
    symbols = build(folder, C_PROGRAM, "c.c", "gcc", "-O1")
    address = return_addresses(symbols, "malloc@plt")[0]
    assert Namer().name(heap_area(symbols, address)).title == "heap@x+0x1 in allocate"


def test_one_remark_for_a_program_that_is_known_by_two_paths(folder: Path) -> None:
    """The dynamic loader knows it by argv[0], the record by where it lies."""
    program = build(folder, C_PROGRAM, "c.c", "gcc", "-O1", "-s")
    namer = Namer()
    namer.program = str(program)
    namer.name(static_area(Path("./gcc.out"), "table"))
    namer.name(heap_area(program, 0x1234))
    assert len(namer.remarks()) == 1


def test_objects_that_are_gone_or_damaged(folder: Path) -> None:
    namer = Namer()
    assert namer.name(heap_area(Path("/nowhere/a.out"), 0x1000)).title == "heap@x+0x1"
    assert "is not here" in namer.remarks()[0]
    program = build(folder, C_PROGRAM, "c.c", "gcc", "-g", "-O1")
    image = program.read_bytes()
    for length in (0, 40, 64, 5000, len(image) // 2, len(image) - 100):
        (folder / "cut").write_bytes(image[:length])
        namer = Namer()
        assert namer.name(heap_area(folder / "cut", 0x1180)).title
        assert namer.name(static_area(folder / "cut", "table")).title == "table"


def test_no_time_for_debug_information(folder: Path) -> None:
    program = build(folder, C_PROGRAM, "c.c", "gcc", "-g", "-O1")
    namer = Namer(Sources(budget=-1.0))
    assert namer.name(static_area(program, "table")).line == 0
    assert "homing report" in namer.remarks()[0]


def test_the_program_that_the_loader_knows_by_a_relative_name(folder: Path) -> None:
    program = build(folder, C_PROGRAM, "c.c", "gcc", "-g", "-O1")
    namer = Namer()
    namer.program = str(program)
    assert namer.name(static_area(Path("./gcc.out"), "table")).line == 2


def test_a_name_that_several_files_use_has_no_line(folder: Path) -> None:
    for number in (1, 2):
        (folder / f"u{number}.c").write_text(
            f"static double twice[9000];\nvoid *get{number}(void) {{ return twice; }}\n"
        )
    main = "void *get1(void), *get2(void);\nint main(void) { return get1() == get2(); }\n"
    program = build(folder, main, "m.c", "gcc", "-g", "u1.c", "u2.c")
    assert Namer().name(static_area(program, "twice")).line == 0


@pytest.mark.parametrize(
    ("symbol", "text"),
    [
        ("MAIN__", "main program"),
        ("_QQmain", "main program"),
        ("__fields_MOD_update", "fields::update"),
        ("_QMfieldsPupdate", "fields::update"),
        ("conj_grad_._omp_fn.3", "conj_grad_"),
        ("main.omp_outlined.5", "main"),
        ("work.constprop.0", "work"),
        ("plain", "plain"),
    ],
)
def test_readable_symbols(symbol: str, text: str) -> None:
    assert readable_symbol(symbol) == text
