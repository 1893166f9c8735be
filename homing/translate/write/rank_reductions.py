"""--to mpi: what OpenMP combined over a rank's threads, combined over the ranks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from homing.translate.code_text import leading_component
from homing.translate.directives.model import Form
from homing.translate.openmp import Record, Reduction
from homing.translate.plan.by_use import ByUse
from homing.translate.tree import Declaration, Routine

#: Operation of the runtime, and what ranks other than 0 begin with; None: the value of before, which changes
#: nothing when it is combined once more.
_FORTRAN = {
    "+": ("sum", "0"),
    "-": ("sum", "0"),
    "*": ("product", "1"),
    "max": ("maximum", None),
    "min": ("minimum", None),
    ".and.": ("and", None),
    ".or.": ("or", None),
    ".neqv.": ("other", ".false."),
    ".eqv.": ("other", ".true."),
    "iand": ("bits_and", None),
    "ior": ("bits_or", None),
    "ieor": ("bits_other", "0"),
}
_C = {
    "+": ("SUM", "0"),
    "-": ("SUM", "0"),
    "*": ("PRODUCT", "1"),
    "max": ("MAXIMUM", None),
    "min": ("MINIMUM", None),
    "&&": ("AND", None),
    "||": ("OR", None),
    "&": ("BITS_AND", None),
    "|": ("BITS_OR", None),
    "^": ("BITS_OTHER", "0"),
}
_FORTRAN_CLASSES = {
    "integer": "integers",
    "real": "reals",
    "doubleprecision": "reals",
    "complex": "complexes",
    "doublecomplex": "complexes",
    "logical": "logicals",
}
_OF_COMPLEX = frozenset({"sum", "product"})
#: Numbers of 128 bits, where the type says it in numbers; of others the program says so when it runs.
_LONG = re.compile(
    r"long\s+double\b|__int128\b|(?:real|integer)\s*(?:\*\s*16\b|\(\s*(?:kind\s*=\s*)?16\s*\))", re.IGNORECASE
)


@dataclass(frozen=True)
class Combined:
    """Lines before and behind the construct."""

    before: list[str]
    behind: list[str]


def combined(routine: Routine, one: Reduction, by_use: ByUse) -> Combined | str:
    """The lines that combine a variable over the ranks, or why there are none."""
    if one.record is not None:
        return _of_record(routine, one, one.record, by_use)
    what = f"REDUCTION({one.operator}:{one.name}{one.section}) over ranks"
    declaration = by_use.declaration(routine, one.name)
    if declaration is not None and _LONG.match(declaration.type):
        return f"{what}: not of numbers of 128 bits"
    if routine.source.form is Form.C:
        return _in_c(one, declaration, what)
    return _in_fortran(one, declaration, what)


def _in_fortran(one: Reduction, declaration: Declaration | None, what: str) -> Combined | str:
    known = _FORTRAN.get(one.operator.lower())
    if known is None:
        return f"{what}: no sum, product, extremum, or operation on logicals or bits"
    if declaration is None:
        return f"{what}: '{one.name}' is not declared here"
    operation, neutral = known
    kind = _fortran_class(declaration)
    if kind is None or (kind == "complexes" and operation not in _OF_COMPLEX):
        return f"{what}: not of integers, reals or logicals, nor a sum or product of complex numbers"
    if declaration.bounds and declaration.bounds[-1].upper is None and not declaration.bounds[-1].deferred:
        return f"{what}: the size of '{one.name}' is not known"
    array = bool(declaration.bounds)
    count = f"size({one.name}, kind=homing_long)" if array else "1_homing_long"
    call = (
        f"call homing_combine{'' if array else '_one'}({one.name}, {count}, storage_size({one.name}), "
        f"homing_{kind}, homing_{operation})"
    )
    before = [f"if (homing_rank() > 0) {one.name} = {neutral}"] if neutral is not None else []
    # Two truths are alike where one and the other's contrary are not: so there is one operation for both.
    contrary = one.operator.lower() == ".eqv."
    behind = [f"if (homing_rank() > 0) {one.name} = .not. {one.name}", call] if contrary else [call]
    return Combined(before, behind)


def _in_c(one: Reduction, declaration: Declaration | None, what: str) -> Combined | str:
    known = _C.get(one.operator)
    if known is None:
        return f"{what}: no sum, product, extremum, or operation on truth or bits"
    if declaration is None:
        return f"{what}: '{one.name}' is not declared here"
    operation, neutral = known
    sections = re.findall(r"\[([^\]:]*):([^\]:]*)\]", one.section)
    if one.section and "".join(f"[{low}:{length}]" for low, length in sections) != one.section:
        return f"{what}: a section must say how long it is"
    if sections and not all(length.strip() for _, length in sections):
        return f"{what}: a section must say how long it is"
    rank = len(declaration.bounds)
    if sections:
        if any(low.strip() not in ("", "0") for low, _ in sections[1:]) or len(sections) > 1:
            return f"{what}: a section in several dimensions"
        element = f"{one.name}[{sections[0][0].strip() or '0'}]"
        count = f"(long)({sections[0][1].strip()})"
    elif rank:
        element = one.name + "[0]" * rank
        count = f"(long)(sizeof {one.name} / sizeof {element})"
    else:
        element, count = one.name, "1"
    before = []
    if neutral is not None and (rank or sections):
        loop = f"for (long hm_i = 0; hm_i < {count}; hm_i++)"
        before = [f"if (homing_rank() > 0) {loop} (&{element})[hm_i] = {neutral};"]
    elif neutral is not None:
        before = [f"if (homing_rank() > 0) {one.name} = {neutral};"]
    call = f"homing_combine(&{element}, {count}, 8 * (int)sizeof {element}, HOMING_CLASS({element}), "
    return Combined(before, [f"{call}HOMING_{operation});"])


def _fortran_class(declaration: Declaration | None) -> str | None:
    word = re.match(r"double\s*\w+|\w+", declaration.type.lower()) if declaration is not None else None
    return _FORTRAN_CLASSES.get(re.sub(r"\s", "", word[0])) if word else None


def _of_record(routine: Routine, one: Reduction, record: Record, by_use: ByUse) -> Combined | str:
    """The ranks elect one of those that have the extremum, and all get what it has kept. The variable that
    holds the extremum brings the lines for all of the record."""
    if leading_component(record.target)[1] != one.name:
        return Combined([], [])
    compared = [(record.operator, record.target), *([record.tie] if record.tie else [])]
    names = (record.target, *record.others)
    lines = []
    for number, (operator, target) in enumerate(compared):
        begins = int(number == 0)
        if routine.source.form is Form.C:
            size = f"8 * (int)sizeof({target}), HOMING_CLASS({target})"
            lines.append(f"homing_elect(&{target}, {size}, HOMING_{_C[operator][0]}, {begins});")
            continue
        kind = _fortran_class(by_use.declaration(routine, target))
        if kind not in ("integers", "reals"):
            return f"the extremum that '{target}' keeps, over ranks: of integers and reals alone"
        size = f"storage_size({target}), homing_{kind}"
        lines.append(f"call homing_elect({target}, {size}, homing_{_FORTRAN[operator][0]}, {begins})")
    if routine.source.form is Form.C:
        lines += [f"homing_share_elected(&{name}, sizeof({name}));" for name in names]
    else:
        lines += [
            f"call homing_share_elected({name}, storage_size({name}, kind=homing_long)/8)" for name in names
        ]
    return Combined([], lines)
