"""How C makes the layout of a distributed array, and takes the memory of its parts."""

from __future__ import annotations

import re

from homing.translate.affine import shifted
from homing.translate.directives import model as d
from homing.translate.plan.array import Array
from homing.translate.plan.arrays import Distributions
from homing.translate.source import Edits
from homing.translate.tree import Routine
from homing.translate.write.c_language import CLanguage
from homing.translate.write.writer import RoutineText

_NO_MEMORY = re.compile(r"^\W*(0|NULL|nullptr)\W*$|^\(\s*void\s*\*\s*\)\s*0$")
_KINDS = {
    d.Kind.STAR: "HOMING_STAR",
    d.Kind.BLOCK: "HOMING_BLOCK",
    d.Kind.CYCLIC: "HOMING_CYCLIC",
    d.Kind.GEN_BLOCK: "HOMING_GEN_BLOCK",
}
#: Types of which GEN_BLOCK's sizes cannot be, as far as their words tell.
_NO_INTEGERS = re.compile(r"\b(?:float|double|_Complex|complex|struct|union|bool|_Bool)\b|\*")
_LONG = re.compile(r"(?:const\s+)?long(?:\s+int)?(?:\s+const)?")


def _counted(array: Array) -> str:
    """The last index of an array whose size is that of its initial value."""
    return f"(long)(sizeof {array.name} / sizeof *{array.name}) - 1"


def _as_longs(name: str, type_text: str, count: str) -> str:
    """GEN_BLOCK's sizes as the runtime takes them."""
    if _LONG.fullmatch(type_text.strip()):
        return name
    return f"homing_longs({name}, {count}, sizeof *{name})"


class CLayouts(RoutineText):
    """Those of one function's arrays, or of a file's."""

    def __init__(self, routine: Routine, distributions: Distributions, edits: Edits, mpi: bool) -> None:
        super().__init__(routine, distributions, edits, mpi)
        self.language = CLanguage(routine.source)

    def _create(self, array: Array, declare: bool, zero: bool | None = None) -> list[str]:
        """zero: does the memory come with zeros? None: as the array's declaration says."""
        rows, sizes = [], []
        for index, dimension in enumerate(array.dimensions):
            bound = array.declaration.bounds[index]
            lower, upper = bound.lower, bound.upper or _counted(array)
            first, last = dimension.lower or lower, dimension.upper or upper
            if dimension.base:
                base = f"{self.layout(dimension.base)}, {dimension.base_dimension}"
                first, last = f"homing_template_lower({base})", f"homing_template_upper({base})"
            argument = dimension.argument or "0"
            if dimension.kind is d.Kind.GEN_BLOCK:
                declared = self.routine.lookup(dimension.sizes)
                if declared is not None and declared[1].bounds:
                    argument = shifted(declared[1].bounds[0].upper or "", 1)
                    sizes.append((_as_longs(dimension.sizes, declared[1].type, argument), argument))
                    if _NO_INTEGERS.search(declared[1].type):
                        reason = f"the sizes '{dimension.sizes}' are no integers"
                        self.problems.append((array.declaration.begin, array.declaration.end, reason))
                elif declared is not None or dimension.sizes.isidentifier():
                    self.problems.append(
                        (
                            array.declaration.begin,
                            array.declaration.end,
                            f"the sizes '{dimension.sizes}' are no array that is declared here",
                        )
                    )
                else:
                    argument = str(dimension.sizes.count(",") + 1)
                    begin, end = self.language.listed("long")
                    sizes.append(
                        (f"{begin}{self.language.numbers(dimension.sizes.split(','))}{end}", argument)
                    )
            low, high = array.shadow[index]
            if array.given_shadow:
                low, high = max(low, array.given_shadow[index][0]), max(high, array.given_shadow[index][1])
            values = [lower, upper, _KINDS[dimension.kind], argument, str(low), str(high), first, last]
            values += [str(dimension.offset), str(dimension.parts or 0)]
            rows.append(f"{{{self.language.numbers(values)}}}")
        if len(sizes) > 1:
            self.problems.append(
                (array.declaration.begin, array.declaration.end, "GEN_BLOCK in two dimensions in C")
            )
        layout = self.layout(array)
        if zero is None:
            zero = array.declaration.storage != "pointer" or _zeroed(array.declaration.initial)
        start = f"{'homing_layout *' if declare else ''}{layout} = "
        begin, end = self.language.listed("homing_dimension")
        lines = [
            f'{start}homing_layout_create("{array.name}", HOMING_C, {array.rank}, '
            f"sizeof({array.declaration.type}),",
            f"    {begin}" + (",\n" + "        ").join(rows) + f"{end},",
            f"    {sizes[0][0] if sizes else 'NULL'});",
            f"homing_allocate_all({layout}, {int(zero)});",
        ]
        return [piece for line in lines for piece in line.split("\n")]


def _zeroed(initial: str | None) -> bool:
    """Does the memory come with zeros? As far as that is not known, it does."""
    if initial is None or "calloc" in initial or _NO_MEMORY.match(initial):
        return True
    return re.search(r"\bnew\b[^;]*\]\s*(\(\s*\)|\{\s*\})\s*$", initial) is not None
