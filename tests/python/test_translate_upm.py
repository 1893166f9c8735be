"""--to upm: hot arrays, the time loop through calls, and the calls of Figures 1 and 2 where they belong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from homing.translate.translation import Options, Refused, Result, translate
from tests.python.translate_programs import APPS, PROGRAMS, TREE, run_command

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
    assert any("20 most critical pages" in line for line in result.report)


# --- a time loop inside a parallel region -----------------------------------------------------------------

#: REGION begins the region and END ends it; BODY is the time loop's.
FORTRAN = """program steps
  implicit none
  integer, parameter :: n = 100
  integer :: i, k
  real(8) :: a(n)
  a = 1
REGION
  do k = 1, 5
BODY
  end do
END
  print *, sum(a)
end program
"""
SWEEP = """    !$omp do
    do i = 1, n
      a(i) = a(i)*0.5d0 + k
    end do
    !$omp end do
"""
#: The same as a region of its own.
NESTED = SWEEP.replace("!$omp do", "!$omp parallel do").replace("!$omp end do", "!$omp end parallel do")
REGION, END = "  !$omp parallel private(k)", "  !$omp end parallel"

#: In the place of the library: how often each of its calls was made.
COUNTED = """#include <stddef.h>
#include <stdio.h>
static int begun, arrays, iterations;
void upmlib_init(void) { ++begun; }
void upmlib_memrefcnt(const void* start, size_t bytes) { arrays += start != NULL && bytes == 800; }
void upmlib_migrate_memory(void) { ++iterations; }
void upmlib_init_(void) { upmlib_init(); }
void upmlib_memrefcnt_(const void* start, const int* bytes) { upmlib_memrefcnt(start, (size_t)*bytes); }
void upmlib_migrate_memory_(void) { upmlib_migrate_memory(); }
__attribute__((destructor)) static void tell(void) { printf("%d %d %d\\n", begun, arrays, iterations); }
"""


def program(region: str = REGION, body: str = SWEEP, end: str = END) -> str:
    return FORTRAN.replace("REGION", region).replace("BODY\n", body).replace("END\n", end + "\n")


def translated(folder: Path, phases: bool = False, **files: str) -> Result:
    """Files by their names, with _ in the place of the dot."""
    paths = []
    for name, text in files.items():
        paths.append(folder / name.replace("_", "."))
        paths[-1].write_text(text)
    return translate([str(path) for path in paths], Options("upm", phases=phases))


def added(path: Path, result: Result) -> list[str]:
    """What the translation put into the file, each with the user's line behind it; without interfaces."""
    found = []
    user = path.read_text().splitlines()
    number = 0
    text = next(one.text for one in result.outputs if one.path == str(path))
    for line in re.sub(
        r"^ *interface\n.*?^ *end interface\n", "", text, flags=re.DOTALL | re.MULTILINE
    ).splitlines():
        if line.startswith(("# ", "#line ")):
            continue
        if number < len(user) and line == user[number]:
            number += 1
        else:
            found.append(f"{number + 1}: {line}")
    assert number == len(user), "the user's lines are all there"
    return found


def outputs(folder: Path, result: Result, threads: int) -> tuple[list[str], list[str]]:
    """Of the program as it is, and translated: what it prints, behind it the number of each call."""
    found = []
    (folder / "counted.c").write_text(COUNTED)
    for made in (False, True):
        place = folder / str(made)
        place.mkdir(exist_ok=True)
        names = []
        for output in result.outputs:
            path = Path(output.path)
            (place / path.name).write_text(output.text if made else path.read_text())
            names.append(path.name)
        compiler = "gcc" if names[0].endswith(".c") else "gfortran"
        strict = ["-Wall", "-Werror"] if compiler == "gcc" else ["-Wall"]
        more = ["../counted.c", f"-I{TREE / 'include'}"]
        run_command([compiler, "-fopenmp", "-g", *strict, *names, *more, "-o", "program"], place)
        found.append(run_command(["./program"], place, OMP_NUM_THREADS=str(threads)).splitlines())
    return found[0], found[1]


def test_time_loop_inside_a_region_in_fortran() -> None:
    source = APPS / "chapman" / "lu.f90"
    result = translate([str(source)], Options("upm"))
    sizes = [
        f"57:   call upmlib_memrefcnt({name}, storage_size({name}, 8)/8*size({name}, kind=8))"
        for name in ("column_error", "column_sum", "lu")
    ]
    assert added(source, result) == [
        "57:   call upmlib_init()",
        *sizes,
        "72:     !$omp master",
        "72:     call upmlib_migrate_memory()",
        "72:     !$omp end master",
    ]
    assert result.report[-5:] == [
        f"upm: {source}:58: time loop over k in lu_factorisation, inside the parallel region of {source}:57, "
        "1 worksharing construct in it",
        *(
            f"upm: {name} registered before the parallel region of {source}:57"
            for name in ("column_error", "column_sum", "lu")
        ),
        "upm: upmlib_migrate_memory() at the end of each iteration, called by the master thread; pages move "
        "at the next barrier",
    ]


def test_time_loop_inside_a_region_in_c() -> None:
    source = APPS / "chapman" / "lu.c"
    result = translate([str(source)], Options("upm", flags=(f"-I{APPS / 'common'}",)))
    assert added(source, result) == [
        "1: #include <homing/homing.h>",
        "47:     upmlib_init();",
        "47:     upmlib_memrefcnt(lu, (size_t)n * (size_t)n * sizeof(double));",
        "57: #pragma omp master",
        "57:         upmlib_migrate_memory();",
    ]
    assert f"upm: lu registered before the parallel region of {source}:47" in result.report


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_one_call_an_iteration_whatever_the_team(threads: int, tmp_path: Path) -> None:
    result = translated(tmp_path, steps_f90=program())
    plain, made = outputs(tmp_path, result, threads)
    assert made == [*plain[:-1], "1 1 5"]


@pytest.mark.parametrize(("region", "end", "sweep"), [(REGION, END, SWEEP), ("", "", NESTED)])
def test_cycle_leaves_the_call_out_inside_a_region_and_outside(
    region: str, end: str, sweep: str, tmp_path: Path
) -> None:
    result = translated(tmp_path, steps_f90=program(region, sweep + "    if (mod(k, 2) == 0) cycle\n", end))
    plain, made = outputs(tmp_path, result, 3)
    assert made == [*plain[:-1], "1 1 3"]


def test_fixed_form(tmp_path: Path) -> None:
    lines = []
    for line in program().splitlines():
        text = line.strip()
        lines.append(text if text.startswith("!$") else "      " + text)
    result = translated(tmp_path, steps_f="\n".join(lines) + "\n")
    assert [line.partition(": ")[2] for line in added(tmp_path / "steps.f", result)][-3:] == [
        "!$omp master",
        "      call upmlib_migrate_memory()",
        "!$omp end master",
    ]
    plain, made = outputs(tmp_path, result, 3)
    assert made == [*plain[:-1], "1 1 5"]


SHAPES = {
    "braces": ("", "for (int k = 0; k < 5; k++) {", "}"),
    "none": ("", "for (int k = 0; k < 5; k++)", ""),
    "while": ("int k = 0;\n", "while (k++ < 5) {", "}"),
    "do": ("int k = 0;\n", "do {", "} while (++k < 5);"),
    "do and no braces": ("int k = 0;\n", "do", "while (++k < 5);"),
    "a brace behind the last statement": ("", "for (int k = 0; k < 5; k++) {", "(void)k; }"),
    "an if around the region": ("if (argc > 0)\n", "for (int k = 0; k < 5; k++) {", "}"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_bodies_of_c(shape: str, tmp_path: Path) -> None:
    before, head, tail = SHAPES[shape]
    private = " firstprivate(k)" if before.startswith("int") else ""
    source = f"""#include <stdio.h>
int main(int argc, char** argv) {{
    double a[100] = {{(double)argc}};
    (void)argv;
    {before}
#pragma omp parallel{private}
    {head}
#pragma omp for
        for (int i = 0; i < 100; i++)
            a[i] = a[i] * 0.5 + 1;
    {tail}
    printf("%.17g\\n", a[0] + a[99]);
    return 0;
}}
"""
    result = translated(tmp_path, steps_c=source)
    plain, made = outputs(tmp_path, result, 3)
    assert made == [*plain[:-1], "1 1 5"]


STEPPED = """subroutine sweep(a, k)
  implicit none
  integer :: i, k
  real(8) :: a(100)
  !$omp do
  do i = 1, 100
    a(i) = a(i)*0.5d0 + k
  end do
  !$omp end do
end subroutine
subroutine stepped(a)
  implicit none
  integer :: k
  real(8) :: a(100)
  do k = 1, 5
    call sweep(a, k)
  end do
end subroutine
"""


def calling(region: str) -> str:
    """A program whose time loop lies in another file."""
    text = program()
    begin, end = text.index(REGION), text.index(END)
    return text[:begin] + region + text[end + len(END) + 1 :]


CALLED = "  !$omp parallel\n  call stepped(a)\n  !$omp end parallel\n"


def test_time_loop_in_a_procedure_that_is_called_inside_a_region(tmp_path: Path) -> None:
    result = translated(tmp_path, main_f90=calling(CALLED), stepped_f90=STEPPED)
    main, stepped = tmp_path / "main.f90", tmp_path / "stepped.f90"
    assert [line.partition("(")[0] for line in added(main, result)] == [
        "7:   call upmlib_init",
        "7:   call upmlib_memrefcnt",
    ]
    assert "!$omp master" in result.outputs[1].text and "!$omp master" not in result.outputs[0].text
    assert result.report[-3:-1] == [
        f"upm: {stepped}:15: time loop over k in stepped, inside the parallel region of {main}:7, "
        "1 worksharing construct in it",
        f"upm: a registered before the parallel region of {main}:7",
    ]
    plain, made = outputs(tmp_path, result, 3)
    assert made == [*plain[:-1], "1 1 5"]


def test_arrays_that_nobody_sees_where_the_region_begins(tmp_path: Path) -> None:
    hidden = STEPPED.replace("subroutine stepped(a)", "subroutine stepped()").replace(
        "  integer :: k\n  real(8) :: a(100)", "  integer :: k\n  real(8), save :: a(100)"
    )
    result = translated(
        tmp_path, main_f90=calling(CALLED.replace("stepped(a)", "stepped()")), stepped_f90=hidden
    )
    assert result.report[-2:] == [
        "upm: a (stepped) is not visible in steps, where the parallel region begins: not registered",
        "upm: no hot array can be registered: nothing inserted",
    ]
    assert not any(output.changed for output in result.outputs)


def test_arrays_that_get_their_memory_inside_the_region(tmp_path: Path) -> None:
    text = program(REGION + "\n  !$omp single\n  allocate (a(n))\n  a = 1\n  !$omp end single")
    text = text.replace("real(8) :: a(n)\n  a = 1", "real(8), allocatable :: a(:)")
    result = translated(tmp_path, steps_f90=text)
    assert "upm: a is allocated inside the parallel region: not registered" in result.report
    assert not result.outputs[0].changed


def test_arrays_that_get_their_memory_in_the_time_loop(tmp_path: Path) -> None:
    """Before it there is nothing to register."""
    (tmp_path / "p.f90").write_text(
        "program p\n real(8), allocatable :: a(:)\n integer :: i, k\n do k = 1, 3\n  allocate (a(4000 * k))\n"
        "  !$omp parallel do\n  do i = 1, size(a)\n   a(i) = i\n  end do\n  print *, sum(a)\n"
        "  deallocate (a)\n end do\nend program\n"
    )
    result = translate([str(tmp_path / "p.f90")], Options("upm"))
    assert "upm: a is allocated inside the time loop: not registered" in result.report
    assert not result.outputs[0].changed


CALLED_ELSEWHERE = "  !$omp parallel\n  !$omp single\n  call stepped(a)\n  !$omp end single\n" + END + "\n"
REFUSED = {
    "single": (
        program(REGION + "\n  !$omp single", NESTED, "  !$omp end single\n" + END),
        "the time loop lies inside the single construct of {file}:8, which a team does not run together",
    ),
    "sections": (
        program("  !$omp parallel sections", NESTED, "  !$omp end parallel sections"),
        "the time loop lies inside the parallel sections construct of {file}:7, which a team does not run "
        "together",
    ),
    "nested": (
        program(REGION + "\n" + REGION, SWEEP, END + "\n" + END),
        "the time loop lies inside the parallel construct of {file}:8, which lies inside another",
    ),
    "nowait": (
        program(body=SWEEP.replace("!$omp end do", "!$omp end do nowait")),
        "the time loop lies inside a parallel region, and no iteration comes to a barrier, where pages could "
        "move",
    ),
    "called in single, too": (
        calling(CALLED + CALLED_ELSEWHERE) + STEPPED,
        "stepped, where the time loop is, is also called inside the single construct of {file}:11",
    ),
    "one end for two loops": (
        program(REGION, SWEEP, END)
        .replace("do k = 1, 5", "do 10 k = 1, 5")
        .replace("do i = 1, n", "do 10 i = 1, n")
        .replace("    end do\n    !$omp end do\n  end do\n", "10 continue\n"),
        "the time loop ends at the same statement as a loop inside it",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    text, reason = REFUSED[case]
    result = translated(tmp_path, steps_f90=text)
    last = result.report[-1]
    file = tmp_path / "steps.f90"
    assert re.fullmatch(r"upm: .*steps\.f90:\d+: (.*): nothing inserted", last), last
    assert reason.format(file=file) in last
    assert not result.outputs[0].changed


def test_phases_inside_a_region_are_refused(tmp_path: Path) -> None:
    result = translated(tmp_path, phases=True, steps_f90=program())
    assert result.report[-1] == (
        f"upm: {tmp_path / 'steps.f90'}:8: the time loop lies inside a parallel region, but phases are "
        "recorded between regions only: nothing inserted"
    )
    assert not result.outputs[0].changed


def test_directives_are_not_lost() -> None:
    result = translate([str(APPS / "chapman" / "jacobi.f90")], Options("upm"))
    unused = [note for note in result.notes if "not used with --to upm" in note.reason]
    assert unused
    assert all("homing" in note.text for note in unused)


#: How the two arrays of a solver change places behind a sweep that reads one and writes the other.
EXCHANGES = {
    "by a third pointer": ("c", "double *t = a; a = b; b = t;"),
    "by their addresses": ("c", "flip(&a, &b);"),
    "in a function": ("c", "relax(a, b); if (k) continue;"),
    "of C++": ("cpp", "std::swap(a, b);"),
    "pointers of Fortran": ("f90", "t => a\n a => b\n b => t"),
    "allocatable": ("f90", "call move_alloc(a, t)\n call move_alloc(b, a)\n call move_alloc(t, b)"),
}
EXCHANGED_C = """#include <stdlib.h>
enum { N = 99 };
static void flip(double **p, double **q) { double *t = *p; *p = *q; *q = t; }
static void relax(double *x, double *y)
{
    for (int s = 0; s < 2; s++) {
        double *z = x; x = y; y = z;
    }
}
int main(void)
{
    double *a = (double *)malloc(N * sizeof *a), *b = (double *)malloc(N * sizeof *b), c[N][N];
    for (int k = 0; k < 5; k++) {
#pragma omp parallel for
        for (int i = 1; i < N - 1; i++) {
            double *row = c[i];
            b[i] = a[i - 1] + a[i + 1];
            row[2] = b[i];
        }
        HERE
    }
}
"""
EXCHANGED_FORTRAN = """program p
 real(8), KIND :: a(:), b(:), t(:)
 integer :: i, k
 allocate (a(99), b(99))
 do k = 1, 5
  !$omp parallel do
  do i = 2, 98
   b(i) = a(i - 1) + a(i + 1)
  end do
 HERE
 end do
end program
"""


@pytest.mark.parametrize("case", EXCHANGES)
def test_arrays_that_change_places(case: str, tmp_path: Path) -> None:
    ending, here = EXCHANGES[case]
    text = (EXCHANGED_FORTRAN if ending == "f90" else EXCHANGED_C).replace("HERE", here)
    text = "#include <utility>\n" + text if ending == "cpp" else text
    (tmp_path / f"p.{ending}").write_text(
        text.replace("KIND", "allocatable" if "move_alloc" in here else "pointer")
    )
    said = translate([str(tmp_path / f"p.{ending}")], Options("upm")).report
    for name in ("a", "b"):
        assert f"upm: {name} registered" in said, said
    if ending != "f90":
        assert any(line.startswith("upm: hot: c (main): read in") for line in said), "by its row"


def test_an_array_that_a_macro_changes(tmp_path: Path) -> None:
    text = EXCHANGED_C.replace("HERE", "").replace("enum {", "#define C(i, j) c[i][j]\nenum {")
    text = text.replace("double *row = c[i];", "").replace("row[2] = b[i];", "C(i, 2) = C(i - 1, 2) + b[i];")
    (tmp_path / "p.c").write_text(text)
    said = translate([str(tmp_path / "p.c")], Options("upm")).report
    assert any(line.startswith("upm: hot: c (main): read in") for line in said), said


def test_arrays_of_lambdas(tmp_path: Path) -> None:
    """They were said to be only read, or only written, by what stands beside."""
    text = EXCHANGED_C.replace("HERE", "").replace("row[2] = b[i];", "row[2] = f(i);")
    text = text.replace("    for (int k", "    auto f = [&](int i) { return c[i][1] * 2; };\n    for (int k")
    (tmp_path / "p.cpp").write_text(text)
    said = translate([str(tmp_path / "p.cpp")], Options("upm")).report
    assert any(line.startswith("upm: hot: c (main): read in code of classes:") for line in said), said


REGIONS = """static double u[9000], w[9000];
struct Field {
    double f[9000];
    void add(int i) { f[i] += i; }
    void step() {
#pragma omp parallel for
        for (int i = 1; i < 8999; i++) f[i] += f[i - 1];
    }
};
static Field fields[2];
template <class T> void smooth(T *a, T *b) {
#pragma omp parallel for
    for (int i = 1; i < 8999; i++) b[i] = a[i - 1] + a[i + 1];
}
int main() {
    for (int t = 0; t < 4; t++) {
        BODY
    }
    return 0;
}
"""


@pytest.mark.parametrize(
    ("body", "line"), [("smooth(u, w); smooth(w, u);", 12), ("fields[0].step();", 6), ("", 12)]
)
def test_regions_of_classes_and_templates_are_said(tmp_path: Path, body: str, line: int) -> None:
    """Where nothing else is hot, that is an error; it was said that there is no array."""
    (tmp_path / "p.cpp").write_text(REGIONS.replace("BODY", body))
    with pytest.raises(Refused, match=rf"p\.cpp:{line}:\d+: nothing is hot but what .* may use, which"):
        translate([str(tmp_path / "p.cpp")], Options("upm"))


def test_objects_that_classes_may_change_are_hot(tmp_path: Path) -> None:
    """They were said to be only read."""
    body = "#pragma omp parallel for\n        for (int i = 0; i < 9000; i++) fields[t % 2].add(i);"
    (tmp_path / "p.cpp").write_text(REGIONS.replace("BODY", body))
    result = translate([str(tmp_path / "p.cpp")], Options("upm"))
    said = result.report
    assert any(one.startswith("upm: hot: fields (p.cpp): read in main:") for one in said), said
    assert any(one.startswith("upm: not followed: a parallel construct in the template") for one in said), (
        said
    )
    assert "upmlib_memrefcnt(fields, sizeof fields);" in result.outputs[0].text
