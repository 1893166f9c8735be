"""Pieces of random whole programs that are OpenMP's other constructs: ORDERED, SECTIONS, WORKSHARE, CRITICAL
and ATOMIC, and an LU step on a matrix that is cut in both dimensions."""

from __future__ import annotations

from tests.python.random_frames import Frames


class Constructs(Frames):
    """Each piece means the same with any number of threads."""

    def _construct_piece(self) -> None:
        kinds = [self._ordered, self._sections, self._guarded, self._guarded]
        if self.fortran:
            kinds.append(self._workshare)
        if len(self.variables) == 2:
            kinds += [self._lu_step, self._lu_step]
        self.random.choice(kinds)()

    def _first(self, array: str, index: str) -> str:
        """An element of the array in its first row or column."""
        return self.to.element(array, [index, *("2" for _ in self.variables[1:])])

    def _word(self) -> str:
        return "do" if self.fortran else "for"

    def _ordered(self) -> None:
        """A loop of which one part keeps the program's order."""
        to, array = self.to, self.random.choice(self.arrays)
        clause = self.random.choice(["", " schedule(static, 1)", " schedule(dynamic)"])
        to.out(f"{to.sentinel} parallel {self._word()} ordered{clause} private(q)")
        with to.loop("i", str(to.first), "n"):
            to.statement(f"q = {to.small('2*' + self._first(array, 'i') + ' + 1')}")
            with to.construct("ordered"):
                to.statement(f"total = {to.small('3*total + q')}")
            if self.random.random() < 0.5:
                to.statement(f"{self._first(array, 'i')} = q")

    def _sections(self) -> None:
        """Two sections that touch different arrays, perhaps each at the home of an element."""
        to = self.to
        one, other = self.random.sample(self.arrays, 2)
        homes = self.random.random() < 0.5
        fixed = ["1" for _ in self.variables]
        with to.construct("parallel sections"):
            for array in (one, other):
                to.out(f"{to.sentinel} section")
                if homes:
                    home = "!$homing" if self.fortran else "#pragma homing"
                    to.lines.append(f"{home} on home({to.element(array, fixed)})")
                target = to.element(array, fixed)
                if not self.fortran:
                    to.out("{")
                to.statement(f"{target} = {to.small(f'5*{target} + 3')}")
                if array == one and self.random.random() < 0.4:
                    to.statement(f"{to.element('w', ['1'])} = 9")
                if not self.fortran:
                    to.out("}")

    def _guarded(self) -> None:
        """What is added up by one thread at a time."""
        to, array = self.to, self.random.choice(self.arrays)
        value = self._first(array, "i")
        to.out(f"{to.sentinel} parallel {self._word()} private(q)")
        with to.loop("i", str(to.first), "n"):
            to.statement(f"q = {to.small(f'{value} + 4')}")
            if self.random.random() < 0.5:
                to.out(f"{to.sentinel} atomic")
                to.statement("total = total + q" if self.fortran else "total += q")
            else:
                name = self.random.choice(["critical", "critical (sums)"])
                to.out(f"{to.sentinel} {name}")
                if not self.fortran:
                    to.out("{")
                to.statement("total = total + q")
                to.statement(f"peak = {'max' if self.fortran else 'greater'}(peak, q)")
                to.out(f"{to.sentinel} end {name}" if self.fortran else "}")
            if self.random.random() < 0.5:
                to.statement(f"{value} = q")

    def _workshare(self) -> None:
        to = self.to
        one, other = self.random.sample(self.arrays, 2)
        section = ",".join("1:n" for _ in self.variables)
        shifted = ",".join(self.random.choice(["0:n-1", "2:n+1"]) for _ in self.variables)
        with to.construct("parallel workshare"):
            to.out(f"{one}({section}) = modulo({other}({shifted})*3 + 1, 10007_8)")
            if self.random.random() < 0.5:
                to.out(f"where ({one}({section}) > 50) {one}({section}) = {one}({section}) - 7")
            if self.random.random() < 0.4:
                to.out(f"total = total + sum({other}({section}))")

    def _lu_step(self) -> None:
        """The steps of LU: a column below the diagonal, then the rest of the matrix."""
        to, array = self.to, self.random.choice(self.arrays)
        home = "!$homing" if self.fortran else "#pragma homing"
        homes = self.random.random() < 0.7
        order = ("j", "i") if self.fortran else ("i", "j")
        with to.loop("k", str(to.first), "n - 1"):
            if homes:
                to.lines.append(f"{home} on home({to.element(array, ['i', 'k'])})")
            to.out(f"{to.sentinel} parallel {self._word()}")
            with to.loop("i", "k + 1", "n"):
                low, pivot = to.element(array, ["i", "k"]), to.element(array, ["k", "k"])
                to.statement(f"{low} = {to.small(f'3*{low} + {pivot}')}")
            if homes and "*" not in self.formats:
                text = f"nest({order[0]}, {order[1]}), on home({to.element(array, ['i', 'j'])})"
                to.lines.append(f"{home} {text}")
            to.out(f"{to.sentinel} parallel {self._word()} private({order[1]})")
            with to.loop(order[0], "k + 1", "n"), to.loop(order[1], "k + 1", "n"):
                here = to.element(array, ["i", "j"])
                row, column = to.element(array, ["k", "j"]), to.element(array, ["i", "k"])
                to.statement(f"{here} = {to.small(f'{here} + {row}*{column}')}")
