"""Random OpenMP programs over distributed arrays, in Fortran and C, that mean the same with any number of
threads: what the translation makes of them must print what they print.

All values are integers, so that sums do not depend on their order. An iteration of a shared-out loop writes
elements that no other iteration touches; loops inside it may need their order, and then the translation may
refuse them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_FORMATS = ("block", "block", "cyclic", "cyclic(2)", "cyclic(3)", "gen_block(4,0,1,9,7,6,5,9)")
_MODULUS = 10007


class Text:
    """One language: how a program is written down."""

    end: str
    sentinel: str
    first = 1  # of the loops over inner elements: neighbours at distance 2 exist

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1

    def out(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def statement(self, text: str) -> None:
        self.out(text + self.end)

    @contextmanager
    def loop(self, variable: str, first: str, last: str, step: int = 1) -> Iterator[None]:
        self.out(self.loop_head(variable, first, last, step))
        self.depth += 1
        yield
        self.depth -= 1
        self.out(self.loop_end)

    @contextmanager
    def branch(self, condition: str) -> Iterator[None]:
        self.out(self.branch_head(condition))
        self.depth += 1
        yield
        self.depth -= 1
        self.out(self.branch_end)

    def otherwise(self) -> None:
        self.depth -= 1
        self.out(self.else_line)
        self.depth += 1

    @contextmanager
    def construct(self, directive: str) -> Iterator[None]:
        """A directive with a block; no block where the directive is for the loop that follows."""
        self.out(f"{self.sentinel} {directive}")
        if self.sentinel.startswith("#"):
            self.out("{")
        self.depth += 1
        yield
        self.depth -= 1
        words = directive.split()
        name = " ".join(words[:2]) if words[1:2] in (["workshare"], ["sections"]) else words[0]
        self.out("}" if self.sentinel.startswith("#") else f"{self.sentinel} end {name}")

    loop_end: str
    branch_end: str
    else_line: str

    def loop_head(self, variable: str, first: str, last: str, step: int) -> str:
        raise NotImplementedError

    def branch_head(self, condition: str) -> str:
        raise NotImplementedError

    def element(self, array: str, subscripts: Sequence[str]) -> str:
        raise NotImplementedError

    def small(self, value: str) -> str:
        """The value, kept small."""
        raise NotImplementedError


class FortranText(Text):
    end, sentinel = "", "!$omp"
    loop_end, branch_end, else_line = "end do", "end if", "else"

    def loop_head(self, variable: str, first: str, last: str, step: int) -> str:
        if step < 0:
            first, last = last, first
        return f"do {variable} = {first}, {last}" + (f", {step}" if step != 1 else "")

    def branch_head(self, condition: str) -> str:
        return f"if ({condition}) then"

    def element(self, array: str, subscripts: Sequence[str]) -> str:
        return f"{array}({','.join(subscripts)})"

    def small(self, value: str) -> str:
        return f"modulo({value}, {_MODULUS}_8)"


class CText(Text):
    end, sentinel, first = ";", "#pragma omp", 2
    loop_end, branch_end, else_line = "}", "}", "} else {"

    def loop_head(self, variable: str, first: str, last: str, step: int) -> str:
        if step < 0:
            return f"for ({variable} = {last}; {variable} >= {first}; {variable} -= {-step}) {{"
        return f"for ({variable} = {first}; {variable} <= {last}; {variable} += {step}) {{"

    def branch_head(self, condition: str) -> str:
        return f"if ({condition}) {{"

    def element(self, array: str, subscripts: Sequence[str]) -> str:
        return array + "".join(f"[{one}]" for one in subscripts)

    def small(self, value: str) -> str:
        return f"small({value})"


class RandomProgram:
    """One program; text is its source."""

    def __init__(self, seed: int, suffix: str) -> None:
        self.random = random.Random(seed)
        self.fortran = suffix == ".f90"
        self.cxx = suffix == ".cpp"
        self.to: Text = FortranText() if self.fortran else CText()
        self.variables = ["i", "j"][: self.random.choice([1, 2, 2])]
        self.arrays = ["x", "y", "z"][: self.random.randint(2, 3)]
        self._head()
        if self.random.random() < 0.5:
            self._piece(0)
        with self.to.loop("t", "1", self.random.choice(["2", "n - 1"])):
            for _ in range(self.random.randint(1, 3)):
                self._piece(0)
        if self.random.random() < 0.5:
            self._piece(0)
        self._tail()
        self.text = "\n".join(self.to.lines) + "\n"

    # --- the frame --------------------------------------------------------------------------------------

    def _formats(self) -> list[str]:
        one, other = self.random.choice(_FORMATS), self.random.choice(_FORMATS)
        if len(self.variables) == 1:
            return [one]
        if "gen" in one + other:  # its sizes are for one dimension's number of parts
            other = "*"
        return self.random.choice([["*", one], [one, "*"], [one, other]])

    def _head(self) -> None:
        to, formats = self.to, self._formats()
        self.formats = formats
        if self.fortran:
            colons = ",".join(":" for _ in self.variables)
            to.lines = [
                "program fuzz",
                "  implicit none",
                "  integer :: n, i, j, k, t, hi",
                "  integer(8) :: total, q, pivot",
                "  character(16) :: word",
                f"  integer(8), allocatable :: {', '.join(f'{a}({colons})' for a in self.arrays)}, w(:)",
                f"!$homing distribute ({', '.join(formats)}) :: {', '.join(self.arrays)}",
                "  call get_command_argument(1, word)",
                "  read (word, *) n",
            ]
            bounds = ",".join("-1:n+2" for _ in self.variables)
            to.out(f"allocate({', '.join(f'{a}({bounds})' for a in self.arrays)}, w(-1:n+2))")
            for start in ("total = 0", "q = 0", "k = 1", "hi = n"):
                to.out(start)
        else:
            extents = ", ".join("n + 4" for _ in self.variables)
            dealt = ", ".join(a + "".join(f"[{f}]" for f in formats) for a in self.arrays)
            to.lines = [
                "#include <stdio.h>",
                "#include <stdlib.h>",
                f"static long small(long a) {{ return (a % {_MODULUS} + {_MODULUS}) % {_MODULUS}; }}",
                "int main(int argc, char** argv) {",
                "  int n = argc > 1 ? atoi(argv[1]) : 5, i = 0, j = 0, k = 1, t, hi = n;",
                "  long total = 0, q = 0, pivot = 0, *w = malloc(sizeof(long) * (size_t)(n + 4));",
                "  (void)i, (void)j, (void)k, (void)q, (void)pivot, (void)hi;",
            ]
            for array in self.arrays:
                two = len(self.variables) == 2
                size = "sizeof(long) * (size_t)(n + 4)" + (" * (size_t)(n + 4)" if two else "")
                to.out(f"long {f'(*{array})[n + 4]' if two else f'*{array}'} = malloc({size});")
            to.lines.append(f"#pragma homing distribute {dealt} extent({extents})")
        low, high = ("-1", "n+2") if self.fortran else ("0", "n + 3")
        with to.loop("i", low, high):
            to.statement(f"{to.element('w', ['i'])} = 7*i")
        for number, array in enumerate(self.arrays):
            value = f"{number + 3}*i + {number + 5}*{self.variables[-1]}*{self.variables[-1]} + 11"
            self._everywhere(low, high, f"{to.element(array, self.variables)} = {to.small(value)}")

    def _everywhere(self, low: str, high: str, statement: str, at: int = 0) -> None:
        if at == len(self.variables):
            self.to.statement(statement)
            return
        with self.to.loop(self.variables[at], low, high):
            self._everywhere(low, high, statement, at + 1)

    def _tail(self) -> None:
        to = self.to
        if self.fortran:
            to.out(f"print '(*(i0,1x))', {', '.join(self.arrays)}")
            to.out("print '(a,i0)', 'sum ', total")
            to.out(f"deallocate({', '.join(self.arrays)})")
            to.lines.append("end program")
            return
        for array in self.arrays:
            self._everywhere("0", "n + 3", f'printf("%ld ", {to.element(array, self.variables)})')
        to.out('printf("sum %ld\\n", total);')
        for array in [*self.arrays, "w"]:
            to.out(f"free({array});")
        to.lines.append("}")

    # --- what it does -----------------------------------------------------------------------------------

    def _piece(self, depth: int) -> None:
        kind = self.random.random()
        if kind < 0.35:
            self._region()
        elif kind < 0.7:
            self._loop_nest(inside=False)
        elif kind < 0.8:
            low = str(self.to.first)
            one, other = self.random.choices(self.arrays, k=2)
            value = f"3*{self.to.element(other, [self._shifted(v, (0, 1)) for v in self.variables])} + 1"
            target = self.to.element(one, self.variables)
            self._everywhere(low, "n", f"{target} = {self.to.small(value)}")
        elif kind < 0.9 and depth < 2:
            with self.to.branch(self.random.choice(["n > 3", "n < 100", "hi > 2", "total > 0"])):
                self._piece(depth + 1)
                if self.random.random() < 0.4:
                    self.to.otherwise()
                    self._piece(depth + 1)
        elif kind < 0.95 and depth < 2:
            self._dealt_out_anew(self._formats())
            self._piece(depth + 1)
            self._dealt_out_anew(self.formats)
        else:
            self.to.statement(f"hi = {self.random.choice(['n', 'n - 1', 'n - 2'])}")

    def _dealt_out_anew(self, formats: Sequence[str]) -> None:
        if self.fortran:
            self.to.lines.append(f"!$homing redistribute ({', '.join(formats)}) :: {', '.join(self.arrays)}")
            return
        each = (array + "".join(f"[{one}]" for one in formats) for array in self.arrays)
        self.to.lines.append(f"#pragma homing redistribute {', '.join(each)}")

    def _region(self) -> None:
        counters = "" if self.fortran else "i, j, "
        with self.to.construct(f"parallel private({counters}q, pivot, k)"):
            self.to.statement("q = 2")
            self.to.statement("k = 1")
            repeated = self.random.random() < 0.3
            if repeated:
                with self.to.loop("k", "1", "min(n, 3)" if self.fortran else "(n < 3 ? n : 3)"):
                    self._region_pieces("k")
            else:
                self._region_pieces("1")

    def _region_pieces(self, index: str) -> None:
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if kind < 0.7:
                self._loop_nest(inside=True)
            elif kind < 0.75:
                self._plain_loop()
            elif kind < 0.85:
                self._single()
            else:
                array = self.random.choice(self.arrays)
                element = self.to.element(array, [index for _ in self.variables])
                self.to.statement(f"pivot = {element}")
                if not self.fortran:
                    self.to.statement("(void)pivot")

    def _plain_loop(self) -> None:
        """A shared array that is no part's."""
        to = self.to
        clause = "" if self.fortran else " private(i)"
        to.out(f"{to.sentinel} {'do' if self.fortran else 'for'}{clause}")
        with to.loop("i", str(to.first), "n"):
            to.statement(f"{to.element('w', ['i'])} = {to.small(to.element('w', ['i']) + ' + 3')}")

    def _single(self) -> None:
        to = self.to
        one, other = self.random.choices(self.arrays, k=2)
        fixed = [self.random.choice(["1", "2"]) for _ in self.variables]
        with to.construct("single"):
            kind = self.random.choice(["element", "row", "whole"])
            if kind == "element":
                value = to.small(f"5*{to.element(other, fixed)} + 2")
                to.statement(f"{to.element(one, ['1' for _ in self.variables])} = {value}")
            elif kind == "row":
                with to.loop("i", str(to.first), "n"):
                    read = to.element(other, ["i", *fixed[1:]])
                    to.statement(f"{to.element(one, ['i', *fixed[1:]])} = {to.small(f'2*{read} + 1')}")
            elif self.fortran:
                to.statement(f"{one} = {other} + 1")
            else:
                last, start = (["n" for _ in self.variables], ["0" for _ in self.variables])
                to.statement(f"{to.element(one, last)} = {to.element(other, start)}")

    def _shifted(self, variable: str, by: Sequence[int]) -> str:
        distance = self.random.choice(by)
        return f"{variable}{distance:+d}" if distance else variable

    def _loop_nest(self, inside: bool) -> None:
        """A loop nest that OpenMP shares out; with a recurrence, carried values, writes into neighbours."""
        to, choose, variables = self.to, self.random.random, self.variables
        order = list(reversed(variables)) if self.fortran == (choose() < 0.8) else list(variables)
        target = self.random.choice(self.arrays)
        others = [array for array in self.arrays if array != target]
        far = choose() < 0.35
        written = [self._shifted(v, (0, 0, 1, -1) if far else (0,)) for v in variables]
        reads = [
            to.element(
                self.random.choice(others), [self._shifted(v, (0, 0, 1, -1, 2, -2)) for v in variables]
            )
            for _ in range(self.random.randint(1, 3))
        ]
        together = len(order) == 2 and choose() < 0.2  # COLLAPSE
        if choose() < 0.4:
            reads.append(to.element(target, written))
        if choose() < 0.2 and len(order) == 2 and not together:
            step, inner = self.random.choice([-1, 1]), variables.index(order[1])
            earlier = [_more(one, step if at == inner else 0) for at, one in enumerate(written)]
            reads.append(to.element(target, earlier))
        if choose() < 0.15:
            reads.append(to.element(self.random.choice(others), ["1" for _ in variables]))
        if choose() < 0.3:
            reads.append(to.element("w", [self.random.choice(["i", "i-1", "i+2"])]))
        counters = [] if self.fortran else order if together else order[1:]
        private = [*dict.fromkeys([*counters, *([] if together else order[1:]), "q"])]
        clauses = f"private({', '.join(private)})" + (" collapse(2)" if together else "")
        summed = choose() < 0.25
        clauses += " reduction(+:total)" if summed else ""
        word = "do" if self.fortran else "for"
        to.out(f"{to.sentinel} {'' if inside else 'parallel '}{word} {clauses}")
        high = self.random.choice(["n", "n", "hi"])
        steps = [self.random.choice([1, 1, 1, -1, 2, -2]) for _ in order]
        carried = choose() < 0.15 and not together

        def body() -> None:
            values = list(reads)
            if carried:
                to.statement(f"q = {to.small(f'q + {reads[0]}')}")
            elif choose() < 0.4:
                to.statement(f"q = {to.small(f'3*{reads[0]} + 1')}")
                values.append("q")
            condition = self._condition(reads[0]) if choose() < 0.25 else None
            total = " + ".join(f"{self.random.randint(1, 9)}*{value}" for value in values)
            if condition is None:
                to.statement(f"{to.element(target, written)} = {to.small(total)}")
            else:
                with to.branch(condition):
                    to.statement(f"{to.element(target, written)} = {to.small(total)}")
            if summed:
                to.statement(f"total = total + {to.element(target, written)}")

        with to.loop(order[0], str(to.first), high, steps[0]):
            if carried:
                to.statement("q = 4")
            if len(order) == 1:
                body()
            else:
                with to.loop(order[1], str(to.first), high, steps[1]):
                    body()

    def _condition(self, value: str) -> str:
        modulo = "mod(i, 3) == 0" if self.fortran else "i % 3 == 0"
        return self.random.choice([modulo, "n > 3", f"{value} > 500"])


def _more(subscript: str, by: int) -> str:
    """The subscript plus a number."""
    match = re.fullmatch(r"(\w)([+-]\d+)?", subscript)
    assert match is not None
    total = int(match[2] or 0) + by
    return f"{match[1]}{total:+d}" if total else match[1]
