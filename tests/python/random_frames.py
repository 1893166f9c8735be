"""The frames of random whole programs: declarations, modules, include files, second files and procedures."""

from __future__ import annotations

from tests.python.random_programs import RandomProgram, Text

#: The largest size that a program is run with: static arrays are as large.
LARGEST = 8


class Frames(RandomProgram):
    """Head and tail of a program, in either language. before and behind: its other files, by when they are
    compiled; later: procedures, by name; called: functions that loops use."""

    before: dict[str, str]
    behind: dict[str, str]
    included: dict[str, str]
    later: list[tuple[str, Text]]
    called: set[str]
    generic: bool
    old: bool

    def _head(self) -> None:
        self.before: dict[str, str] = {}
        self.behind: dict[str, str] = {}
        self.included = {}
        self.formats = self._formats()
        choose = self.random.choice
        if self.fortran:
            kinds = ["allocatable"] * 4 + ["static"] * 3 + ["module"] * 3 + ["module static", "common static"]
            self.storage = choose(kinds)
            self.place = choose(["contains", "module", "external"])
        else:
            kinds = ["allocated", "allocated", "automatic", "file"]
            if self.cxx:  # no parameter of C++ has a width that is not constant
                kinds = kinds[2:] if len(self.variables) == 2 else ["allocated", "new", *kinds[2:]]
            self.storage = choose(kinds)
            self.place = choose(["same"] * 7 + ["second"])
        self.second = self.random.random() < 0.4
        #: Procedures of a module are called by a generic name; arrays are declared by older statements.
        self.generic = self.fortran and self.place == "module" and self.random.random() < 0.5
        self.old = self.fortran and "static" in self.storage and self.random.random() < 0.4
        self.include = self.random.random() < 0.3
        self.aligned = self.random.random() < 0.2
        if self.fortran:
            self._fortran_head()
        else:
            self._c_head()
        to = self.to
        low, high = ("-1", "n+2") if self.fortran else ("0", "n + 3")
        with to.loop("i", low, high):
            to.statement(f"{to.element('w', ['i'])} = 7*i")
        for number, array in enumerate(self.arrays):
            value = f"{number + 3}*i + {number + 5}*{self.variables[-1]}*{self.variables[-1]} + 11"
            self._everywhere(low, high, f"{to.element(array, self.variables)} = {to.small(value)}")

    def _directives(self) -> list[str]:
        first, *others = self.arrays
        if self.fortran:
            formats = ", ".join(self.formats)
            if not self.aligned:
                return [f"!$homing distribute ({formats}) :: {', '.join(self.arrays)}"]
            index = ", ".join(self.variables)
            return [
                f"!$homing distribute {first}({formats})",
                *(f"!$homing align {one}({index}) with {first}({index})" for one in others),
            ]
        extent = f" extent({', '.join('n + 4' for _ in self.variables)})"
        extent = extent if self.storage in ("allocated", "new") else ""
        each = "".join(f"[{one}]" for one in self.formats)
        if not self.aligned:
            return ["#pragma homing distribute " + ", ".join(one + each for one in self.arrays) + extent]
        index = "".join(f"[{one}]" for one in self.variables)
        return [
            f"#pragma homing distribute {first}{each}{extent}",
            *(f"#pragma homing align {one}{index} with {first}{index}" for one in others),
        ]

    def _fortran_head(self) -> None:
        static = "static" in self.storage
        module = "module" in self.storage
        bounds = ", ".join((f"-1:{LARGEST + 2}" if static else ":") for _ in self.variables)
        kind = "integer(8)" if static else "integer(8), allocatable"
        each = [f"{a}({bounds})" for a in self.arrays]
        declared = [f"  {kind} :: {', '.join(each)}"]
        if self.old:
            declared = [f"  integer(8) {', '.join(self.arrays)}", f"  dimension {', '.join(each)}"]
            declared = declared[:: self.random.choice([1, -1])]
        if self.storage == "common static":
            declared.append(f"  common /hold/ {', '.join(self.arrays)}")
        declared += self._directives()
        scalars = [
            "  integer :: n, i, j, k, t, hi, unit",
            "  integer(8) :: total, q, pivot, peak, bits, last",
            "  character(40) :: word",
        ]
        lines = ["program fuzz"]
        if module:
            store = ["module store", "  implicit none", "  save", *declared, "end module"]
            if self.second:
                self.before["store.f90"] = "\n".join(store) + "\n"
                lines = ["program fuzz"]
            else:
                lines = [*store, "program fuzz"]
            lines.append("  use store")
        self.with_work = len(lines)
        lines.append("  implicit none")
        lines += scalars
        own = [] if module else declared
        if self.include and own:
            self.included["declared.inc"] = "\n".join(own) + "\n"
            own = ["  include 'declared.inc'"]
        lines += own
        lines.append("  integer(8), allocatable :: w(:)")
        self.to.lines = lines
        self.to.out("call get_command_argument(1, word)")
        self.to.out("read (word, *) n")
        if not static:
            bounds = ",".join("-1:n+2" for _ in self.variables)
            self.to.out(f"allocate({', '.join(f'{a}({bounds})' for a in self.arrays)})")
        else:
            for array in self.arrays:
                self.to.out(f"{array} = 0")
        self.to.out("allocate(w(-1:n+2))")
        for start in ("total = 0", "q = 0", "k = 1", "hi = n", "peak = 0", "bits = 0", "last = 0"):
            self.to.out(start)

    def _c_head(self) -> None:
        two = len(self.variables) == 2
        common = [
            "#include <stdio.h>",
            "#include <stdlib.h>",
            "#define SMALL(a) (((a) % 10007 + 10007) % 10007)",
            *(["#include <initializer_list>"] if self.cxx else []),
        ]
        if self.include or self.place == "second":
            self.included["common.h"] = "\n".join(["#pragma once", *common]) + "\n"
            common = ['#include "common.h"']
        common += [
            "static inline long small(long a) { return SMALL(a); }",
            "static inline long greater(long a, long b) { return a > b ? a : b; }",
        ]
        self.common = common
        lines = [*common, "/*procedures*/"]
        width = f"[{LARGEST + 4}]" * len(self.variables)
        if self.storage == "file":
            lines += [f"static long {', '.join(one + width for one in self.arrays)};", *self._directives()]
        lines += [
            "int main(int argc, char** argv) {",
            "  int n = argc > 1 ? atoi(argv[1]) : 5, i = 0, j = 0, k = 1, t, hi = n;",
            "  long total = 0, q = 0, pivot = 0, *w = (long *)malloc(sizeof(long) * (size_t)(n + 4));",
            "  long peak = 0, bits = 0, last = 0;",
            "  (void)i, (void)j, (void)k, (void)q, (void)pivot, (void)hi, (void)last;",
        ]
        if self.storage == "automatic":
            lines.append(f"  long {', '.join(one + width for one in self.arrays)};")
        for array in self.arrays if self.storage == "allocated" else ():
            size = "sizeof(long) * (size_t)(n + 4)" + (" * (size_t)(n + 4)" if two else "")
            cast = "(long *)" if self.cxx else ""
            lines.append(f"  long {f'(*{array})[n + 4]' if two else f'*{array}'} = {cast}malloc({size});")
        for array in self.arrays if self.storage == "new" else ():
            lines.append(f"  long *{array} = new long[n + 4]{self.random.choice(['', '()'])};")
        if self.storage != "file":
            lines += self._directives()
        self.to.lines = lines

    def _tail(self) -> None:
        to = self.to
        if self.fortran:
            if "static" in self.storage:
                section = ",".join("-1:n+2" for _ in self.variables)
                shown = ", ".join(f"{array}({section})" for array in self.arrays)
            else:
                shown = ", ".join(self.arrays)
            to.out(f"print '(*(i0,1x))', {shown}")
            to.out("print '(a,*(i0,1x))', 'sum ', total, peak, bits")
            to.out("print '(*(i0,1x))', w")
            if "static" not in self.storage:
                to.out(f"deallocate({', '.join(self.arrays)})")
            self._fortran_procedures()
            return
        for array in self.arrays:
            self._everywhere("0", "n + 3", f'printf("%ld ", {to.element(array, self.variables)})')
        to.out('printf("sum %ld %ld %ld\\n", total, peak, bits);')
        with to.loop("i", "0", "n + 3"):
            to.out('printf("%ld ", w[i]);')
        for array in self.arrays if self.storage == "new" else ():
            to.out(f"delete[] {array};")
        for array in [*(self.arrays if self.storage == "allocated" else ()), "w"]:
            to.out(f"free({array});")
        to.lines.append("}")
        self._c_procedures()

    # --- procedures -------------------------------------------------------------------------------------

    def _fortran_procedures(self) -> None:
        to = self.to
        dims = ",".join("-1:" for _ in self.variables)
        explicit = ",".join("-1:n+2" for _ in self.variables)
        made: list[str] = []
        apart = self.place == "external" and "static" not in self.storage
        for name, body in self.later:
            shape = explicit if apart else dims
            called = apart and any("twice(" in line for line in body.lines)
            made += [
                f"subroutine {name}(a, b, w, n, hi, total, peak, bits)",
                "  implicit none",
                "  integer, intent(in) :: n, hi",
                f"  integer(8), intent(inout) :: a({shape}), b({shape}), w(-1:), total, peak, bits",
                "  integer :: i, j, k",
                "  integer(8) :: q, last",
                *(["  integer(8), external :: twice"] if called else []),
                "  q = 0; last = 0; k = 1",
                *body.lines,
                "end subroutine",
            ]
        twice = [
            "pure integer(8) function twice(v)",
            "  implicit none",
            "  integer(8), intent(in) :: v",
            "  twice = 2*v + 1",
            "end function",
        ]
        made += twice if "twice" in self.called else []
        if not made:
            to.lines.append("end program")
            return
        # Assumed shapes need an interface, which external procedures do not have.
        if self.place == "contains" or (self.place == "external" and "static" in self.storage):
            to.lines += ["contains", *made, "end program"]
            return
        if self.place == "external":
            if "twice" in self.called:
                to.lines.insert(self.with_work + 1, "  integer(8), external :: twice")
            if self.later:
                made = [line.replace(" w(-1:),", " w(-1:n+2),") for line in made]
            text = [line.replace("pure integer(8) function", "integer(8) function") for line in made]
            to.lines.append("end program")
            if self.second:
                self.behind["work.f90"] = "\n".join(text) + "\n"
            else:
                to.lines += text
            return
        generics = [
            f"  interface any_{name}\n    module procedure {name}\n  end interface" for name, _ in self.later
        ]
        generics = generics if self.generic else []
        work = ["module work", "  implicit none", *generics, "contains", *made, "end module"]
        to.lines.append("end program")
        to.lines.insert(self.with_work, "  use work")
        if self.second:
            self.before["work.f90"] = "\n".join(work) + "\n"
        else:
            to.lines[:0] = work

    def _c_procedures(self) -> None:
        static = "" if self.place == "second" and self.later else "static "
        width = "[n + 4]" if self.storage == "allocated" else f"[{LARGEST + 4}]"
        two = len(self.variables) == 2
        reference = self.cxx and two and self.random.random() < 0.5

        def shape(one: str) -> str:
            if reference:
                return f"long (&{one}){width}{width}"
            return f"long (*{one}){width}" if two else f"long *{one}"

        heads, made = [], []
        for name, body in self.later:
            head = (
                f"{static}void {name}(int n, int hi, {shape('a')}, {shape('b')}, long *w, long *total_, "
                "long *peak_, long *bits_)"
            )
            heads.append(head + ";")
            made += [
                head + " {",
                "  int i = 0, j = 0, k = 1;",
                "  long total = *total_, peak = *peak_, bits = *bits_, q = 0, last = 0;",
                "  (void)i, (void)j, (void)k, (void)q, (void)last, (void)hi, (void)w, (void)a, (void)b;",
                *body.lines,
                "  *total_ = total, *peak_ = peak, *bits_ = bits;",
                "}",
            ]
        twice = ["static long twice(long v) { return 2*v + 1; }"] if "twice" in self.called else []
        at = self.to.lines.index("/*procedures*/")
        if static:
            self.to.lines[at : at + 1] = [*twice, *made]
            return
        self.to.lines[at : at + 1] = [*twice, *heads]
        uses = [*self.common, *(twice if any("twice(" in line for line in made) else []), *heads]
        self.behind["work.cpp" if self.cxx else "work.c"] = "\n".join([*uses, *made]) + "\n"
