"""Random whole programs: what RandomProgram makes, and around it what users' programs have.

Names that are keywords, intrinsics or very long; modules, include files, second files; static, automatic and
allocatable arrays; procedures that hold loops, are called inside regions, or by loops; input and output; the
clauses of OpenMP; homes that directives give. What a program prints depends neither on the number of threads
nor on where its iterations run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.python.random_constructs import Constructs
from tests.python.random_names import (
    C_INTRINSICS,
    C_KEYWORDS,
    CXX_KEYWORDS,
    FORTRAN_INTRINSICS,
    FORTRAN_KEYWORDS,
    GNU_SUBROUTINES,
    LONG,
)
from tests.python.random_programs import Text

SCHEDULES = (
    "static", "static, 1", "dynamic", "guided", "auto", "static, 2", "runtime",
    "monotonic: static", "dynamic, 3",
)  # fmt: skip
_NAMED = ("x", "y", "z", "w", "q", "total", "hi", "pivot", "step", "sweep", "peak", "bits", "last")


class WholeProgram(Constructs):
    """One program; files are its sources by name, in the order of their compilation; what is included is in
    `included`."""

    files: dict[str, str]
    included: dict[str, str]

    def __init__(self, seed: int, suffix: str) -> None:
        self.later: list[tuple[str, Text]] = []  # procedures
        self.called: set[str] = set()
        self.seed = seed
        super().__init__(seed, suffix)
        self.names = self._names()
        own = f"p{suffix}"
        self.files = {**self.before, own: self.text, **self.behind}
        self.files = {name: self._renamed(text) for name, text in self.files.items()}
        self.included = {name: self._renamed(text) for name, text in self.included.items()}
        self.text = self.files[own]

    # --- names ------------------------------------------------------------------------------------------

    def _names(self) -> dict[str, str]:
        words, intrinsics = (
            (FORTRAN_KEYWORDS, FORTRAN_INTRINSICS) if self.fortran else (C_KEYWORDS, C_INTRINSICS)
        )
        words = [one for one in words if not (self.cxx and one in CXX_KEYWORDS)]
        intrinsics = [] if self.cxx else list(intrinsics)  # std's functions of these names are overloaded
        self.random.shuffle(words)
        self.random.shuffle(intrinsics)
        names: dict[str, str] = {}
        for name in _NAMED:
            style = self.random.random()
            outside = not self.fortran and (self.storage == "file" or name in ("step", "sweep"))
            if style < 0.3:
                procedure = name in ("step", "sweep")
                at = max(i for i, one in enumerate(words) if not (procedure and one in GNU_SUBROUTINES))
                names[name] = words.pop(at)
            elif style < 0.4 and not outside:
                # One that the program calls, too, is none that it may declare.
                names[name] = next(
                    (one for one in intrinsics if one not in names.values() and not self._uses(one)), name
                )
            elif style < 0.5 and name in LONG:
                names[name] = LONG[name]
        return names

    def _uses(self, word: str) -> bool:
        texts = [self.text, *self.before.values(), *self.behind.values(), *self.included.values()]
        return any(re.search(rf"\b{word}\b", text) for text in texts)

    def _renamed(self, text: str) -> str:
        def word(match: re.Match[str]) -> str:
            return match[0] if match[0][0] in "'\"" else self.names.get(match[0], match[0])

        return re.sub(r"""'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|\b[A-Za-z_]\w*""", word, text)

    # --- procedures -------------------------------------------------------------------------------------

    def _call(self, name: str) -> None:
        one, other = self.random.sample(self.arrays, 2)
        if self.fortran:
            called = f"any_{name}" if self.generic else name
            self.to.out(f"call {called}({one}, {other}, w, n, hi, total, peak, bits)")
        else:
            self.to.out(f"{name}(n, hi, {one}, {other}, w, &total, &peak, &bits);")

    def _procedure(self) -> None:
        """Serial code calls a procedure with loops that are shared out."""
        if all(name != "step" for name, _ in self.later):
            outer, arrays = self.to, self.arrays
            self.to, self.arrays = type(outer)(), ["a", "b"]
            for _ in range(self.random.randint(1, 2)):
                self._loop_nest(inside=False)
            self.later.append(("step", self.to))
            self.to, self.arrays = outer, arrays
        self._call("step")

    def _inside_procedure(self) -> None:
        """A region calls a procedure with a loop that is shared out (no region of its own)."""
        if all(name != "sweep" for name, _ in self.later):
            outer, arrays = self.to, self.arrays
            self.to, self.arrays = type(outer)(), ["a", "b"]
            self._loop_nest(inside=True, plain=True)
            self.later.append(("sweep", self.to))
            self.to, self.arrays = outer, arrays
        one, other = self.random.sample(self.arrays, 2)
        if self.fortran:
            self.to.out(f"call sweep({one}, {other}, w, n, hi, total, peak, bits)")
        else:
            # Every thread has its own copies of what is added up, and adds nothing.
            self.to.out("{ long unused[3] = {0, 0, 0};")
            self.to.out(f"sweep(n, hi, {one}, {other}, w, &unused[0], &unused[1], &unused[2]); }}")

    # --- what it does -----------------------------------------------------------------------------------

    def _piece(self, depth: int) -> None:
        kind = self.random.random()
        if kind < 0.12:
            self._procedure()
        elif kind < 0.18:
            self._output()
        elif kind < 0.24:
            self._whole()
        elif kind < 0.28 and self.fortran:
            self._file()
        elif kind < 0.33 and self.storage in ("allocatable", "module", "allocated"):
            self._allocated_anew()
        elif kind < 0.45:
            self._construct_piece()
        else:
            super()._piece(depth)

    def _dealt_out_anew(self, formats: Sequence[str]) -> None:
        if self.storage in ("allocatable", "allocated", "static", "automatic") and not self.aligned:
            super()._dealt_out_anew(formats)

    def _output(self) -> None:
        array = self.random.choice(self.arrays)
        element = self.to.element(array, ["1" for _ in self.variables])
        if not self.fortran:
            self.to.out(f'printf("%ld %ld\\n", {element}, total);')
            return
        kind = self.random.choice(["print", "write", "internal"])
        if kind == "print":
            self.to.out(f"print '(*(i0,1x))', {element}, total")
        elif kind == "write":
            self.to.out(f"write (*, '(a,i0)') 'element ', {element}")
        else:
            self.to.out(f"write (word, '(i0)') {element}")
            self.to.out("print '(a)', trim(word)")

    def _whole(self) -> None:
        one, other = self.random.sample(self.arrays, 2)
        if self.fortran:
            section = ",".join("1:n" for _ in self.variables)
            texts = [
                f"total = total + sum({one}({section}))",
                f"peak = max(peak, maxval({one}({section})), int(count({other}({section}) > 50), 8))",
                f"{one}({section}) = modulo({other}({section}) + 3, 10007_8)",
                f"where ({one}({section}) > 100) {one}({section}) = {other}({section})",
                f"if (any({one}({section}) > 9000)) bits = ieor(bits, 5_8)",
                f"total = total + size({one})*0 + lbound({other}, 1)",
            ]
            if "static" not in self.storage:
                texts.append(f"{one} = {other}")
            self.to.out(self.random.choice(texts))
            return
        target = self.to.element(one, self.variables)
        value = self.to.element(other, self.variables)
        self._everywhere(
            "1", "n", self.random.choice([f"total += {target}", f"{target} = SMALL({value} + 3)"])
        )

    def _file(self) -> None:
        array = self.random.choice(self.arrays)
        section = ",".join("1:n" for _ in self.variables)
        for line in (
            "open (newunit=unit, status='scratch')",
            f"write (unit, *) {array}({section})",
            "rewind (unit)",
            f"read (unit, *) {array}({section})",
            "close (unit)",
        ):
            self.to.out(line)

    def _allocated_anew(self) -> None:
        array = self.random.choice(self.arrays)
        if self.fortran:
            bounds = ",".join("-1:n+2" for _ in self.variables)
            other = next(one for one in self.arrays if one != array)
            self.to.out(f"deallocate({array})")
            how = self.random.choice(["", "", "source=5_8", f"source={other}", f"mold={other}"])
            named = f"{array}({bounds})" if "=5" in how or not how or self.random.random() < 0.3 else array
            self.to.out(f"allocate({named}, {how})" if how else f"allocate({named})")
            if "source" not in how:
                self.to.out(f"{array} = 5")
            return
        low, high = "0", "n + 3"
        self._everywhere(low, high, f"{self.to.element(array, self.variables)} = 5")

    # --- regions ----------------------------------------------------------------------------------------

    def _region_pieces(self, index: str) -> None:
        kind = self.random.random()
        if kind < 0.1:
            self._inside_procedure()
        elif kind < 0.16:
            self._by_one()
        super()._region_pieces(index)

    def _by_one(self) -> None:
        """MASTER and SINGLE with clauses, around what is no array's."""
        name = self.random.choice(["master", "single", "single copyprivate"])
        if name == "single copyprivate":
            if self.fortran:
                for line in ("!$omp single", "q = total + 3", "!$omp end single copyprivate(q)"):
                    self.to.out(line)
            else:
                self.to.out("#pragma omp single copyprivate(q)")
                self.to.out("q = total + 3;")
            return
        with self.to.construct(name):
            self.to.statement("total = total + 1")
        self.to.out(f"{self.to.sentinel} barrier")

    # --- loops ------------------------------------------------------------------------------------------

    def _dressed(self, value: str) -> str:
        """The value as programs have it: through functions."""
        kind = self.random.random()
        if kind < 0.75:
            return value
        if kind < 0.78:
            self.called.add("twice")
            return f"twice({value})"
        if self.fortran:
            return self.random.choice(
                [
                    f"abs({value} - 5)",
                    f"max({value}, 7_8)",
                    f"iand({value}, 255_8)",
                    f"merge({value}, 3_8, n > 2)",
                ]
            )
        return self.random.choice(
            [f"labs({value} - 5)", f"greater({value}, 7)", f"({value} & 255)", f"(n > 2 ? {value} : 3)"]
        )

    def _loop_nest(self, inside: bool, plain: bool = False) -> None:
        """As RandomProgram's, with clauses, homes and functions. plain: without what is added up."""
        to, choose, variables = self.to, self.random.random, self.variables
        order = list(reversed(variables)) if self.fortran == (choose() < 0.8) else list(variables)
        target = self.random.choice(self.arrays)
        others = [array for array in self.arrays if array != target]
        far = choose() < 0.3
        written = [self._shifted(v, (0, 0, 1, -1) if far else (0,)) for v in variables]
        reads = [
            to.element(
                self.random.choice(others), [self._shifted(v, (0, 0, 1, -1, 2, -2)) for v in variables]
            )
            for _ in range(self.random.randint(1, 3))
        ]
        together = len(order) == 2 and choose() < 0.15
        if choose() < 0.4:
            reads.append(to.element(target, written))
        if choose() < 0.12:
            reads.append(to.element(self.random.choice(others), ["1" for _ in variables]))
        if choose() < 0.3:
            reads.append(to.element("w", [self.random.choice(["i", "i-1", "i+2"])]))
        high = self.random.choice(["n", "n", "hi"])
        reductions = [] if plain else self._reductions()
        last = not inside and not plain and not together and choose() < 0.03
        words = self._clauses(order, together, inside, reductions, last)
        if plain and not self.fortran:  # a dummy argument is private in a region around the call
            words = [one for one in words if one != "firstprivate(hi)"]
        if choose() < 0.55:
            self._home_of(target, written, order)
        word = "do" if self.fortran else "for"
        simd = " simd" if choose() < 0.05 and not together else ""  # gfortran 12 dies of both
        if simd:  # gcc 12 takes ALLOCATE for the loop's, and PRIVATE for the region's
            words = [one for one in words if one != "allocate(q)"]
        to.out(f"{to.sentinel} {'' if inside else 'parallel '}{word}{simd} {' '.join(words)}".rstrip())
        steps = [self.random.choice([1] * 10 + [-1, 2, -2]) for _ in order]

        def body() -> None:
            values = [self._dressed(one) for one in reads]
            if choose() < 0.4:
                to.statement(f"q = {to.small(f'3*{reads[0]} + 1')}")
                values.append("q")
            if last:
                to.statement(f"last = {to.small(reads[0])}")
            total = " + ".join(f"{self.random.randint(1, 9)}*{value}" for value in values)
            assignment = f"{to.element(target, written)} = {to.small(total)}"
            if choose() < 0.25:
                with to.branch(self._condition(reads[0])):
                    to.statement(assignment)
            else:
                to.statement(assignment)
            for one in reductions:
                to.statement(self._added(one, to.element(target, written)))

        with to.loop(order[0], str(to.first), high, steps[0]):
            if len(order) == 1:
                body()
            else:
                with to.loop(order[1], str(to.first), high, steps[1]):
                    body()
        if last:
            with to.branch(f"{to.first} <= {high}"):
                to.statement("total = total + last")

    def _reductions(self) -> list[str]:
        found = []
        if self.random.random() < 0.25:
            found.append("total")
        if self.random.random() < 0.1:
            found.append("peak")
        if self.random.random() < 0.1:
            found.append("bits")
        return found

    def _added(self, name: str, value: str) -> str:
        if name == "total":
            return f"total = total + {value}"
        if name == "peak":
            return f"peak = {'max' if self.fortran else 'greater'}(peak, {value})"
        return f"bits = ieor(bits, {value})" if self.fortran else f"bits = bits ^ {value}"

    def _clauses(
        self, order: Sequence[str], together: bool, inside: bool, reductions: Sequence[str], last: bool
    ) -> list[str]:
        choose, pick = self.random.random, self.random.choice
        operators = {"total": "+", "peak": "max", "bits": "ieor" if self.fortran else "^"}
        counters = [] if self.fortran else list(order if together else order[1:])
        private = [*dict.fromkeys([*counters, *([] if together else order[1:]), "q"])]
        words = [f"private({', '.join(private)})"]
        words += ["collapse(2)"] if together else []
        words += [f"reduction({operators[one]}:{one})" for one in reductions]
        words += ["lastprivate(last)"] if last else []
        if choose() < 0.3:
            words.append(f"schedule({pick(SCHEDULES)})")
        if choose() < 0.08:
            words.append("firstprivate(hi)")
        if not inside and choose() < 0.1:
            words.append(pick(["if(n > 2)", "if(n > 2)", "num_threads(2)", "proc_bind(close)"]))
        if not inside and choose() < 0.12:
            listed = {*private, *reductions, *(["last"] if last else [])}
            firsts = {"hi"} if "firstprivate(hi)" in words else set[str]()
            shared = [
                one
                for one in (*self.arrays, "w", "n", "hi", "total", "peak", "bits")
                if one not in listed | firsts
            ]
            words.append(f"default(none) shared({', '.join(shared)})")
        if choose() < 0.05:
            words.append("order(concurrent)")
        elif choose() < 0.05 and not inside:
            words.append("allocate(q)")
        self.random.shuffle(words)
        return words

    def _home_of(self, target: str, written: Sequence[str], order: Sequence[str]) -> None:
        to = self.to
        dealt = [one for one, form in zip(written, self.formats, strict=True) if form != "*"]
        kind = self.random.random()
        nest = len(order) == 2 and kind < (0.8 if len(dealt) == 2 else 0.1)
        # A home names the index of the outer loop, or NEST names both loops.
        if not nest and not any(one.startswith(order[0]) for one in dealt):
            return
        if self.random.random() < 0.75 or not dealt:
            text = f"on home({to.element(target, written)})"
        else:
            index = next((v for v in order if any(one.startswith(v) for one in dealt)), order[0])
            text = f"affinity({index}) = data({to.element(target, written)})"
        if nest:
            text = f"nest({', '.join(order)}), {text}"
        to.lines.append(f"{'!$homing' if self.fortran else '#pragma homing'} {text}")
