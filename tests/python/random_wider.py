"""Random programs in the rest of the language: pieces that WholeProgram does not have, in Fortran.

POINTER, NAMELIST, components that are allocated, SELECT TYPE, ASSOCIATE, BLOCK, DO CONCURRENT, FORALL, array
constructors, operators, keyword and optional arguments, array intrinsics, tasks, and loop bodies made of
them."""

from __future__ import annotations

from collections.abc import Callable

from tests.python.random_dress import dressed
from tests.python.random_whole import WholeProgram
from tests.python.random_wider_c import WiderC

#: Procedures of the module `kit`, each there if it is used.
KIT = {
    "box": """type :: box
    integer(8), allocatable :: v(:)
    integer(8) :: count = 0
  end type""",
    "plus": """interface operator(.plus.)
    module procedure plus_of
  end interface""",
}
KIT_PROCEDURES = {
    "plus": """pure elemental function plus_of(one, other) result(sum_of)
    integer(8), intent(in) :: one, other
    integer(8) :: sum_of
    sum_of = modulo(one + 3*other, 10007_8)
  end function""",
    "moved": """pure integer(8) function moved(v, by, back)
    integer(8), intent(in) :: v
    integer(8), intent(in), optional :: by
    logical, intent(in), optional :: back
    moved = v + 2
    if (present(by)) moved = v + by
    if (present(back)) moved = merge(-moved, moved, back)
  end function""",
    "smooth": """subroutine smooth(from, onto_this, upto)
    integer(8), intent(in), contiguous :: from(-1:{more})
    integer(8), intent(inout) :: onto_this(-1:{more})
    integer, intent(in), optional :: upto
    integer :: i, j
    j = 1
    if (.not. present(upto)) return
{loop}
  end subroutine""",
    "doubled": """pure function doubled(v) result(w2)
    integer(8), intent(in) :: v(:)
    integer(8) :: w2(size(v))
    w2 = modulo(2*v + 1, 10007_8)
  end function""",
    "level": """recursive integer(8) function level(v) result(deep)
    integer(8), intent(in) :: v
    deep = v
    if (v > 50) deep = level(v/2) + 1
  end function""",
}


class WiderProgram(WiderC, WholeProgram):
    """WholeProgram with more of each language, and written in more ways."""

    def __init__(self, seed: int, suffix: str) -> None:
        self.kit: set[str] = set()
        self.more_declared: dict[str, str] = {}
        self.targets = False
        self.inside: list[str] = []  # procedures of the program's own
        super().__init__(seed, suffix)
        self.files, self.included = dressed(self.random, self.files, self.included, self.fortran)

    # --- Fortran's frame --------------------------------------------------------------------------------

    def _fortran_head(self) -> None:
        super()._fortran_head()
        self.program = self.to
        self.targets = not self.old and self.random.random() < 0.25
        if not self.targets:
            return
        for kind in ("integer(8), allocatable ::", "integer(8) ::"):
            one = f"  {kind} {self.arrays[0]}("
            to = one.replace(" ::", ", target ::")
            self.to.lines = [line.replace(one, to) for line in self.to.lines]
            for texts in (self.before, self.included):
                texts.update({name: text.replace(one, to) for name, text in texts.items()})

    def _tail(self) -> None:
        if not self.fortran:
            self._c_kit()
            super()._tail()
            return
        lines = self.to.lines
        # After the declarations, which the first call ends.
        at = next(i for i, line in enumerate(lines) if "call get_command_argument" in line)
        lines[at:at] = self.more_declared.values()
        if self.kit:
            lines.insert(self.with_work, "  use kit")
        super()._tail()
        self._insides()
        if self.kit:
            types = [KIT[one] for one in sorted(self.kit) if one in KIT]
            made = [KIT_PROCEDURES[one] for one in sorted(self.kit) if one in KIT_PROCEDURES]
            loop = self._smoothing()
            more = ", -1:" if len(self.variables) == 2 else ""
            made = [one.replace("{loop}", loop).replace("{more}", more) for one in made]
            kit = ["module kit", "  implicit none", *types, "contains", *made, "end module"]
            if self.random.random() < 0.4:
                self.before = {"kit.f90": "\n".join(kit) + "\n", **self.before}
            else:
                lines[:0] = kit

    def _insides(self) -> None:
        """The procedures that see the program's arrays go to the others behind CONTAINS."""
        lines = self.program.lines
        end = len(lines) - 1 - lines[::-1].index("end program")
        if self.inside:
            begin = lines.index("program fuzz")
            lines[end:end] = self.inside if "contains" in lines[begin:end] else ["contains", *self.inside]

    def _called(self, a: str, b: str, index: str) -> list[str]:
        """A loop's body that calls a procedure which sees the arrays by itself."""
        name = f"inner_{len(self.inside)}"
        own = ["integer(8) :: q", f"q = {b}", f"if (q > 50) q = q + {b.replace('(i', '(i - 1')}"]
        if self.random.random() < 0.5:
            head, value = f"integer(8) function {name}({index})", f"{name} = modulo(q*3 + {a}, 10007_8)"
            call = self.random.choice(
                [f"{a} = {name}({index})", f"if ({b} > 30) {a} = {name}({index}) + 1",
                 f"{a} = modulo({name}({index})*2 + {b}, 10007_8)"]
            )  # fmt: skip
            self.inside += [head, f"integer, intent(in) :: {index}", *own, value, "end function"]
            return [call]
        self.inside += [
            f"subroutine {name}({index}, v, k)", f"integer, intent(in) :: {index}, k",
            "integer(8), intent(in) :: v", "integer :: at", *own,
            f"if (v > 9000) return\ndo at = 1, k\n{a} = modulo({a} + v*at + q, 10007_8)\nend do",
            "end subroutine",
        ]  # fmt: skip
        return [f"call {name}({index}, {self.random.choice([b, f'{b} + 1', '7_8'])}, 3)"]

    def _smoothing(self) -> str:
        index = ",".join(self.variables)
        heads = [f"do {v} = 1, upto" for v in reversed(self.variables)]
        shared = self.random.choice(["!$omp parallel do private(i)\n", ""]) if len(heads) == 2 else ""
        body = f"onto_this({index}) = modulo(from({index}) + 3*onto_this({index}), 10007_8)"
        return shared + "\n".join([*heads, body, *("end do" for _ in heads)])

    def _declare(self, name: str, text: str) -> None:
        self.more_declared[name] = "  " + text

    # --- pieces -----------------------------------------------------------------------------------------

    def _piece(self, depth: int) -> None:
        if self.random.random() < 0.3:
            (self._fortran_piece if self.fortran else self._c_piece)()
        elif self.random.random() < 0.25:
            self._wide_loop()
        else:
            super()._piece(depth)

    @property
    def section(self) -> str:
        return ",".join("1:n" for _ in self.variables)

    def _row(self, array: str) -> str:
        return f"{array}({','.join(['1:n', *('2' for _ in self.variables[1:])])})"

    def _at(self, array: str, *index: str) -> str:
        subscripts = [*index, *("1" for _ in self.variables)][: len(self.variables)]
        return self.to.element(array, subscripts)

    def _fortran_piece(self) -> None:
        kinds: list[Callable[[str, str], list[str]]] = [
            self._associated, self._in_block, self._concurrent, self._constructed, self._grouped,
            self._component, self._of_type, self._selected, self._operated, self._by_keyword,
            self._array_functions, self._inquired, self._implied, self._tasks, self._while, self._conditional,
        ]  # fmt: skip
        if self.targets:
            kinds += [self._pointed] * 4
        if self.storage in ("allocatable", "module"):
            kinds.append(self._moved_allocation)
        one, other = self.random.sample(self.arrays, 2)
        for line in self.random.choice(kinds)(one, other):
            self.to.out(line)

    def _associated(self, one: str, other: str) -> list[str]:
        e, f = self._at(one, "2"), self._at(other, "1")
        index = ",".join(self.variables)
        loops = [f"do {v} = 1, n" for v in reversed(self.variables)]
        whole = [
            f"associate (seen => {other}, top => n - 1)",
            *(["!$omp parallel do private(i)"] if len(loops) == 2 and self.random.random() < 0.5 else []),
            *loops,
            f"  {one}({index}) = modulo(seen({index}) + 2*{one}({index}) + top, 10007_8)",
            *("end do" for _ in loops),
            "end associate",
        ]
        return self.random.choice(
            [
                [f"associate (e => {e}, m => n + 2)", f"e = modulo(e*3 + m + {f}, 10007_8)", "end associate"],
                whole,
                whole,
                [f"associate (s => {one}({self.section}))", "  total = total + sum(s)", "end associate"],
            ]
        )

    def _in_block(self, one: str, other: str) -> list[str]:
        hides = self.random.choice([one, "own", "q"])
        return [
            "block",
            f"  integer(8) :: {hides}",
            f"  {hides} = 5",
            f"  total = total + {hides} + {self._at(other)}",
            "end block",
        ]

    def _concurrent(self, one: str, other: str) -> list[str]:
        index = ",".join(self.variables)
        ranges = ", ".join(f"{v} = 1:n" for v in self.variables)
        mask = self.random.choice(["", "", ", mod(i, 2) == 1", f", {other}({index}) > 100"])
        value = f"modulo({other}({index})*3 + 1, 10007_8)"
        return self.random.choice(
            [
                [f"do concurrent ({ranges}{mask})", f"  {one}({index}) = {value}", "end do"],
                [f"forall ({ranges}{mask}) {one}({index}) = {value}"],
                [f"forall ({ranges})", f"  {one}({index}) = {value}", "end forall"],
            ]
        )

    def _constructed(self, one: str, other: str) -> list[str]:
        elements = f"({self._at(other, 'i')}*i, i = 1, n)"
        return self.random.choice(
            [
                [f"w(1:3) = [{self._at(one)}, total, 5_8]"],
                [f"total = total + sum([{elements}])"],
                [f"{self._row(one)} = [integer(8) :: {elements}]"],
                [f"w(1:2) = (/ {self._at(other)}, {self._at(one, '2')} /)"],
            ]
        )

    def _grouped(self, one: str, other: str) -> list[str]:
        name = self.random.choice(["hi, total", f"{one}", "total, w"])
        if name == one and self.storage == "common static":
            name = "hi, total"
        named = {"hi, total": "state", "total, w": "both"}.get(name, f"field_{one}")
        self._declare(f"z{named}", f"namelist /{named}/ {name}")
        return [
            "open (newunit=unit, status='scratch', delim='apostrophe')",
            f"write (unit, nml={named})",
            "rewind (unit)",
            f"read (unit, nml={named})",
            "close (unit)",
        ]

    def _component(self, one: str, other: str) -> list[str]:
        self.kit.add("box")
        self._declare("held", "type(box) :: held")
        start = ["if (.not. allocated(held%v)) allocate(held%v(-1:n+2), source=7_8)"]
        loop = [
            self.random.choice(["!$omp parallel do", "!$omp parallel do firstprivate(hi)"]),
            "do i = 1, n",
            f"  {self._at(one, 'i')} = modulo({self._at(one, 'i')} + held%v(i)*held%v(i - 1), 10007_8)",
            "end do",
        ]
        return self.random.choice(
            [
                [*start, *loop],
                [*start, f"held%v(1:n) = {self._row(other)}", f"held%count = held%count + {self._at(one)}"],
                [*start, "!$omp parallel do", "do i = 1, n", f"held%v(i) = {self._at(other, 'i')}", "end do",
                 "total = total + sum(held%v)"],
                [*start, *loop, "total = total + held%count"],
            ]
        )  # fmt: skip

    def _of_type(self, one: str, other: str) -> list[str]:
        self._declare("thing", "class(*), allocatable :: thing")
        return [
            f"allocate(thing, source={self.random.choice([self._at(one), 'n', 'real(n)'])})",
            "select type (thing)",
            "type is (integer(8))",
            f"  total = total + thing + {self._at(other)}",
            "type is (integer)",
            f"  {self._at(one)} = thing",
            "class default",
            "  total = total + 1",
            "end select",
            "deallocate(thing)",
        ]

    def _selected(self, one: str, other: str) -> list[str]:
        return [
            f"select case (modulo({self._at(other)}, 4_8))",
            "case (0)",
            f"  {self._at(one)} = 3",
            "case (1:2)",
            f"  {self._row(one)} = {self._row(other)}",
            "case default",
            f"  hi = n; total = total + {self._at(one)}",
            "end select",
        ]

    def _operated(self, one: str, other: str) -> list[str]:
        self.kit.add("plus")
        a, b = self._at(one), self._at(other)
        return self.random.choice(
            [
                [f"{a} = {a} .plus. {b}"],
                [f"{one}({self.section}) = {one}({self.section}) .plus. {other}({self.section})"],
                [f"total = total + ({a} .plus. 3_8)"],
            ]
        )

    def _by_keyword(self, one: str, other: str) -> list[str]:
        self.kit |= {"moved", "smooth"}
        a, b = self._at(one), self._at(other)
        return self.random.choice(
            [
                [f"{a} = moved(v={b}, back=n > 3)"],
                [f"total = total + moved({a}, by={b})"],
                [f"call smooth(onto_this={one}, from={other}, upto=n)"],
                [f"call smooth({other}, {one}, n)"],
                [f"call smooth({other}, {one})"],
            ]
        )

    def _array_functions(self, one: str, other: str) -> list[str]:
        self.kit |= {"doubled", "level"}
        found = [
            [f"total = total + dot_product({self._row(one)}, {self._row(other)})"],
            [f"{self._row(one)} = doubled({self._row(other)})"],
            [f"{self._row(one)} = cshift({self._row(other)}, 1)"],
            [f"{self._at(one)} = level({self._at(other)})"],
            [f"total = total + sum(maxloc({self._row(one)}))"],
            [f"{self._row(one)} = merge({self._row(one)}, {self._row(other)}, {self._row(one)} > 50)"],
            [f"w(1:n) = pack({self._row(one)}, .true.)"],
            [f"bits = ieor(bits, iall({self._row(one)}))"],
        ]
        if len(self.variables) == 2:
            found += [
                [f"{one}(1:n,1:n) = transpose({other}(1:n,1:n))"],
                [f"w(1:n) = modulo(matmul({one}(1:n,1:n), {other}(1:n,2)), 10007_8)"],
                [f"w(1:n) = sum({one}(1:n,1:n), dim={self.random.choice('12')})"],
                [f"{one}(1:n,1:n) = spread({other}(1:n,1), 2, n)"],
                [f"{one}(1:n,1:n) = reshape([((i + 2_8*j, i = 1, n), j = 1, n)], [n, n])"],
            ]
        return self.random.choice(found)

    def _inquired(self, one: str, other: str) -> list[str]:
        found = [
            f"total = total + ubound({one}, 1) - lbound({other}, dim=1)",
            f"total = total + sum(shape({one})) + size({other}, 1)",
            f"if (size({one}) > 4 .and. kind({one}) == 8) total = total + storage_size({one})",
        ]
        if "static" not in self.storage:
            found.append(f"if (allocated({one})) total = total + 1")
        return [self.random.choice(found)]

    def _implied(self, one: str, other: str) -> list[str]:
        return self.random.choice(
            [
                [f"write (*, '(*(i0,1x))') ({self._at(one, 'i')}, i = 1, n)"],
                [f"print *, {self._row(one)}; print *, n"],
                [f"write (word, *) {self._at(one)}; read (word, *) {self._at(other)}"],
            ]
        )

    def _tasks(self, one: str, other: str) -> list[str]:
        return self.random.choice(
            [
                ["!$omp parallel", "!$omp single", "!$omp task shared(total)", "total = total + 1",
                 "!$omp end task", "!$omp taskwait", "!$omp end single", "!$omp end parallel"],
                ["!$omp parallel private(q)", "q = 1", "!$omp atomic", "bits = ior(bits, q)",
                 "!$omp end parallel"],
                ["!$omp parallel", "!$omp masked", f"total = total + {self._at(one)}", "!$omp end masked",
                 "!$omp end parallel"],
                ["!$omp parallel sections", "!$omp section", "total = total + 1", "!$omp section", "hi = n",
                 "!$omp end parallel sections"],
            ]
        )  # fmt: skip

    def _while(self, one: str, other: str) -> list[str]:
        return [
            "i = 0",
            "outer: do while (i < n)",
            "  i = i + 1",
            f"  if ({self._at(other, 'i')} > 5000) cycle outer",
            f"  if ({self._at(other, 'i')} > 9000) exit outer",
            f"  {self._at(one, 'i')} = {self._at(other, 'i')} + 1",
            "end do outer",
        ]

    def _conditional(self, one: str, other: str) -> list[str]:
        lines = [f"!$ total = total + {self._at(one)}", f"!$ {self._at(other)} = 3"]
        return lines[: self.random.randint(1, 2)]

    def _pointed(self, one: str, other: str) -> list[str]:
        one = self.arrays[0]
        other = self.arrays[1]
        colons = ",".join(":" for _ in self.variables)
        self._declare("view", f"integer(8), pointer :: view({colons})")
        self._declare("line", "integer(8), pointer :: line(:)")
        index = ",".join(self.variables)
        loops = [f"do {v} = 1, n" for v in reversed(self.variables)]
        private = " private(i)" if len(loops) == 2 else ""
        value = f"modulo({other}({index}) + 3, 10007_8)"
        return self.random.choice(
            [
                [f"view => {one}", f"{self._at('view')} = 3", "total = total + sum(view)", "nullify(view)"],
                [f"line => {self._row(one)}", "line = line + 1", f"{self._at(other)} = line(1)"],
                [f"view => {one}", f"!$omp parallel do{private}", *loops, f"  view({index}) = {value}",
                 *("end do" for _ in loops)],
                [f"view => {one}", f"if (associated(view)) {self._at(other)} = {self._at('view', '2')}"],
            ]
        )  # fmt: skip

    def _moved_allocation(self, one: str, other: str) -> list[str]:
        colons = ",".join(":" for _ in self.variables)
        self._declare("spare", f"integer(8), allocatable :: spare({colons})")
        return [f"call move_alloc({one}, spare)", f"call move_alloc(spare, {one})"]

    # --- loops ------------------------------------------------------------------------------------------

    def _wide_loop(self) -> None:
        """A loop that OpenMP shares out, whose body is made of the rest of the language."""
        one, other = self.random.sample(self.arrays, 2)
        order = list(reversed(self.variables)) if self.fortran else list(self.variables)
        index = ",".join(self.variables)
        if not self.fortran:
            self._wide_c_loop(one, other, order)
            return
        if self.random.random() < 0.4:
            self._home_of(one, self.variables, order)
        a, b = f"{one}({index})", f"{other}({index})"
        kinds = [
            ["block", "integer(8) :: own", f"own = {b} + 1", f"{a} = modulo(own*own, 10007_8)", "end block"],
            [f"associate (e => {a}, f => {b})", "e = modulo(e + f, 10007_8)", "end associate"],
            [f"select case (modulo({b}, 3_8))", "case (0)", f"{a} = 1", "case (1)", f"{a} = 9", "end select"],
            [f"if ({b} > 5000) cycle", f"{a} = {b} + 1"],
            ["q = 0", "do while (q < 3)", "q = q + 1", "end do", f"{a} = modulo({b} + q, 10007_8)"],
            [f"q = {b}; {a} = q; if (q > 3) {a} = q - 1"],
            [f"if ({b} > 50) then", f"{a} = 2", f"else if ({b} > 20) then", f"{a} = 3", "else",
             f"{a} = {b}", "end if"],
            ["do k = 1, 4", "if (k == 3) exit", f"{a} = modulo({a} + k*{b}, 10007_8)", "end do"],
            [f"if ({b} > 9000) goto 70", f"{a} = modulo({b} + 5, 10007_8)", "70 continue"],
            [f"{a} = sum([{b}, 3_8, {a}])"],
            [f"{a} = modulo(size({one}, 1) + {b}, 10007_8)"],
            ["block", "integer(8) :: tmp(3)", f"tmp = {b}", "tmp(2) = 4", f"{a} = modulo(sum(tmp), 10007_8)",
             "end block"],
        ]  # fmt: skip
        if not self.kit.isdisjoint(("moved", "plus")) or self.random.random() < 0.5:
            self.kit |= {"moved", "plus"}
            kinds += [[f"{a} = moved(by={b}, v=3_8)"], [f"{a} = {b} .plus. {a}"]]
        body = self.random.choice(kinds)
        if self.to is self.program and self.random.random() < 0.4:
            body = self._called(a, b, index)
        if len(order) == 2 and self.random.random() < 0.35:
            outer = order[0]
            every = ["1:n" if v == "i" else v for v in self.variables]
            s, t = f"{one}({','.join(every)})", f"{other}({','.join(every)})"
            body = self.random.choice(
                [
                    [f"{s} = modulo({t}*2 + 1, 10007_8)"],
                    [f"where ({t} > 100) {s} = {t} - 1"],
                    [f"{s} = {t}"],
                    ["do concurrent (i = 1:n)", f"{a} = modulo({b} + 7, 10007_8)", "end do"],
                    [f"forall (i = 1:n) {a} = modulo({b} + 7, 10007_8)"],
                ]
            )
            head = [f"do {outer} = 1, n"]
        else:
            head = [f"do {v} = 1, n" for v in order]
        label = self.random.random() < 0.15 and not any("goto" in one for one in body)
        private = "private(i, q, k)" if len(order) == 2 else "private(q, k)"
        if (
            len(order) == 2
            and len(head) == 2
            and self.random.random() < 0.1
            and not any(one.startswith("do ") for one in body)
        ):
            private = "collapse(2) private(q, k)"
        self.to.out(f"!$omp parallel do {private}")
        if label:
            head = [one.replace("do ", f"do {90 + at} ") for at, one in enumerate(head)]
        for line in [*head, *body]:
            self.to.out(line)
        for at in reversed(range(len(head))):
            self.to.out(f"{90 + at} continue" if label else "end do")
