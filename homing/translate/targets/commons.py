"""Distributed arrays of COMMON blocks, as arrays of a module (--to spmd, --to mpi).

A COMMON block says where its members lie beside one another, and a distributed array lies in parts. Where
all that name a block mean the same arrays by the same names, as INCLUDE files make it, nothing depends on
that: the block could as well be a module, with its distributed arrays. The text is changed before it is
planned, into what the user could have written; what is not distributed stays in the block.

The module stands in the main program's file. Other files that name the block use it; what compiles them has
it from there (program/common_modules.py). Otherwise the array stays where it is, and is refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from homing.translate.directives import model as d
from homing.translate.front import lines as text_lines
from homing.translate.front.declarations import common_entities
from homing.translate.front.expressions import Expressions
from homing.translate.front.kinds import form
from homing.translate.program.shared import COMMON as MODULE
from homing.translate.source import Edits, SourceFile
from homing.translate.targets.common_data import MovedData, moved_data
from homing.translate.tree import Declaration, Routine, Unit, references, statements
from homing.translate.write.fortran_declarations import without_entities

#: Types that mean the same everywhere.
_TYPE = re.compile(
    r"(integer|real|complex|logical|character|double\s*precision|double\s*complex)"
    r"(\s*\*\s*\d+|\s*\(\s*((kind|len)\s*=)?\s*\d+\s*\))?$",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"[\d+\-*/() ]+")
#: How deep PARAMETERs may be made of others.
_DEEPEST = 20


def as_modules(units: Sequence[Unit]) -> dict[int, SourceFile]:
    """New sources for units, by their places in the sequence."""
    names = sorted({declaration.block for unit in units for _, declaration in _members(unit)})
    blocks = [_Block(units, name) for name in names]
    blocks = [one for one in blocks if one.arrays and one.possible()]
    found = {}
    for index, unit in enumerate(units):
        mine = [one for one in blocks if any(unit is user for user in (*one.users, one.holder))]
        source = _changed(unit, mine) if mine else None
        if mine and source is None:
            return {}
        if source is not None:
            found[index] = source
    return found


def repeat_directives(units: Sequence[Unit]) -> None:
    """--to pages, where arrays stay in their blocks: what one routine says of an array holds in all that use
    it, where all mean the same members by the block."""
    for name in sorted({declaration.block for unit in units for _, declaration in _members(unit)}):
        block = _Block(units, name)
        if not block.arrays or not block.alike():
            continue
        said = {
            one.name.key: one
            for routine in reversed(block.routines)
            for one in routine.directives
            if isinstance(one, d.Distribute | d.Align) and one.name.key in block.arrays
        }
        for routine in block.routines:
            own = {one.name.key for one in routine.directives if isinstance(one, d.Distribute | d.Align)}
            bodies = [r.body for unit in units for r in unit.routines if r is routine or r.parent is routine]
            if {one.name for body in bodies for one in references(body)} & block.arrays:
                routine.directives += [one for name, one in said.items() if name not in own]


def _members(unit: Unit) -> Iterator[tuple[Routine, Declaration]]:
    for routine in unit.routines if unit.form is not d.Form.C else ():
        for declaration in routine.declarations.values():
            if declaration.storage == "common":
                yield routine, declaration


@dataclass(frozen=True)
class _Statement:
    """A COMMON statement: (block, name, text) of each member."""

    begin: int
    end: int
    members: tuple[tuple[str, str, str], ...]


def _commons(routine: Routine, unit: Unit) -> list[_Statement]:
    """The COMMON statements of a routine itself."""
    inner = [one for one in unit.routines if one is not routine and one.parent is routine]
    found = []
    for line in text_lines.split(unit.source):
        if line.openmp or not routine.begin <= line.begin < routine.end:
            continue
        if any(one.begin <= line.begin < one.end for one in inner):
            continue
        code = Expressions(line.code, line.places)
        what = form(code.words)
        if what.kind == "common":
            members = tuple(
                (block, code.words[first].text, code.code[code.words[first].begin : code.words[last - 1].end])
                for block, first, last in common_entities(code, what.at)
            )
            found.append(_Statement(line.begin, line.end, members))
    return found


class _Block:
    """One COMMON block of a program. arrays: its distributed ones; users: the files that name it; holder: the
    main program's."""

    def __init__(self, units: Sequence[Unit], name: str) -> None:
        self.name = name
        every = [
            (unit, routine)
            for unit in units
            for routine in unit.routines
            if any(one.block == name and one.storage == "common" for one in routine.declarations.values())
        ]
        self.routines = [routine for _, routine in every]
        self.users = [unit for unit in units if any(one is unit for one, _ in every)]
        self._unit = {id(routine): unit for unit, routine in every}
        mains = [unit for unit in units if any(one.main for one in unit.routines)]
        self.holder = mains[0] if len(mains) == 1 else None
        self.arrays = {
            directive.name.key
            for routine in self.routines
            for directive in routine.directives
            if isinstance(directive, d.Distribute | d.Align) and self._mine(routine, directive.name.key)
        }

    @property
    def module(self) -> str:
        return f"{MODULE}{self.name or 'blank'}"

    def _mine(self, routine: Routine, name: str) -> bool:
        found = routine.declarations.get(name)
        return found is not None and found.storage == "common" and found.block == self.name

    # --- where it can be done ---------------------------------------------------------------------------

    def possible(self) -> bool:
        """Is the block the same thing to all that name it?"""
        if self.holder is None:
            return False
        main = next(one for one in self.holder.routines if one.main)
        if main.head_end == main.begin:
            return False  # of one without a PROGRAM statement
        if main not in self.routines and self._named(main, self.holder):
            return False
        if not self.alike():
            return False
        private = re.compile(rf"\$omp[^\n]*/\s*{re.escape(self.name)}\s*/", re.IGNORECASE)
        if any(private.search(unit.source.text) for unit in self.users):
            return False
        return all(self._free(routine) for routine in self.routines)

    def alike(self) -> bool:
        """Do all mean the same members by it, and do their directives not contradict?"""
        layouts = {self._layout(routine) for routine in self.routines}
        return len(layouts) == 1 and None not in layouts and self.directives() is not None

    def _named(self, main: Routine, holder: Unit) -> bool:
        """Does the main program, or what is in it, mean something else by the arrays' names?"""
        inside = [one for one in holder.routines if one is main or one.parent is main]
        used = {name for one in inside for s in statements(one.body) for name in (*s.reads, *s.writes)}
        return bool(self.arrays & (used | {name for one in inside for name in one.declarations}))

    def _free(self, routine: Routine) -> bool:
        """Does nothing else tie the arrays to the block in a routine?"""
        members = {one.name for one in routine.declarations.values() if one.block == self.name}
        if (routine.equivalence | routine.private) & {*members, self.name}:
            return False
        held = [routine.declarations[name] for name in self.arrays]
        bound = {"namelist", "target", "pointer", "save", "volatile"}
        if any(one.attributes & bound or one.initial is not None for one in held):
            return False
        return self.data(routine) is not None

    def data(self, routine: Routine) -> list[MovedData] | None:
        """The routine's DATA statements of the arrays; None: the module could not say the same."""
        return moved_data(routine, self.arrays, lambda text: _number(text, routine))

    def _layout(self, routine: Routine) -> tuple[str, ...] | None:
        """The members in their order, with what they are; None: that is not known here."""
        named = [
            name
            for statement in _commons(routine, self._unit[id(routine)])
            for block, name, _ in statement.members
            if block == self.name
        ]
        texts = [self.declared(routine, name) for name in named]
        return None if None in texts or not self.arrays <= set(named) else tuple(map(str, texts))

    def declared(self, routine: Routine, name: str) -> str | None:
        """A declaration of the member that means the same anywhere."""
        found = routine.declarations[name]
        kind = " ".join(found.type.lower().split())
        if _TYPE.match(kind) is None:
            return None
        sides = []
        for bound in found.bounds:
            low, high = _number(bound.lower, routine), _number(bound.upper or "", routine)
            if low is None or high is None:
                return None
            sides.append(f"{low}:{high}" if low != 1 else str(high))
        shape = f"({', '.join(sides)})" if sides else ""
        return f"{kind} :: {found.spelling.lower()}{shape}"

    def directives(self) -> list[str] | None:
        """The directives of the arrays, one for each; None: they contradict, or name others, too."""
        kept: dict[str, str] = {}
        for routine in self.routines:
            for one in routine.directives:
                if isinstance(one, d.Template | d.Arrangement):
                    return None
                if not isinstance(one, d.Declaration) or one.name.key not in self.arrays:
                    continue
                said = _said(one, routine)
                other = isinstance(one, d.Align) and one.target.name.key not in self.arrays
                if other or said is None or kept.setdefault(one.name.key, said) != said:
                    return None
        return list(kept.values())


def _said(one: d.Declaration, routine: Routine) -> str | None:
    """The directive's text, of one array; None: it means something only where it stands."""
    if isinstance(one, d.Align):
        return _written(one).lower()
    if not isinstance(one, d.Distribute) or one.onto is not None or one.extents:
        return None
    values = {each: [_number(text.text, routine) for text in each.arguments] for each in one.formats}
    if any(None in numbers for numbers in values.values()):
        return None
    return _written(one, {each: list(map(str, numbers)) for each, numbers in values.items()}).lower()


def _written(one: d.Distribute | d.Align, arguments: Mapping[d.Format, Sequence[str]] | None = None) -> str:
    """The directive's text, of one array. arguments: of its formats, where they are not as they were."""
    if isinstance(one, d.Align):
        inner = ", ".join(text.text for text in one.subscripts)
        outer = ", ".join(text.text for text in one.target.subscripts)
        return f"align {one.name.key}({inner}) with {one.target.name.key}({outer})".replace("()", "")
    formats = []
    for each in one.formats:
        texts = arguments[each] if arguments else [text.text for text in each.arguments]
        formats.append(each.kind.value + (f"({', '.join(texts)})" if texts else ""))
    behind = ""
    if one.onto is not None:
        weights = ", ".join(text.text for text in one.onto.weights)
        behind = f" onto {one.onto.arrangement or f'({weights})'}"
    if one.extents:
        behind += f" extent({', '.join(text.text for text in one.extents)})"
    return f"distribute{'_reshape' if one.reshape else ''} {one.name.key}({', '.join(formats)}){behind}"


def _number(text: str, routine: Routine, depth: int = 0) -> int | None:
    """The value of a constant expression of whole numbers."""
    missing = depth > _DEEPEST

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        found = routine.lookup(match[0].lower())
        initial = found[1].initial if found and "parameter" in found[1].attributes else None
        inner = _number(initial, routine, depth + 1) if initial is not None and not missing else None
        missing |= inner is None
        return f"({inner})"

    plain = re.sub(r"[A-Za-z]\w*", value, text)
    if missing or _NUMBERS.fullmatch(plain) is None:
        return None
    try:
        return _evaluated(ast.parse(plain.strip(), mode="eval").body)
    except (SyntaxError, ZeroDivisionError):
        return None


def _evaluated(node: ast.expr) -> int | None:
    """As Fortran computes it: division leaves the fraction away."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _evaluated(node.operand)
        return None if inner is None else -inner
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _evaluated(node.left), _evaluated(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Div):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    plain = {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}
    return plain.get(type(node.op))


# --- the new text -------------------------------------------------------------------------------------------


def _changed(unit: Unit, blocks: Sequence[_Block]) -> SourceFile | None:
    source = unit.source
    edits = Edits(source)
    margin = "      " if source.form is d.Form.FIXED else ""
    for block in blocks:
        if unit is block.holder:
            edits.insert_lines(0, list(_module(block, margin)))
        for routine in unit.routines:
            if routine in block.routines or (routine.main and unit is block.holder):
                # ONLY: where the module is in another file, other names in the routine are none of its own.
                only = "" if routine.main else f", only: {', '.join(sorted(block.arrays))}"
                edits.insert_lines(routine.head_end, [f"{margin}use {block.module}{only}"], first=True)
        mine = [routine for routine in block.routines if routine.source is unit.source]
        if not all(_without(edits, unit, routine, blocks) for routine in mine):
            return None
    lines = [line.line_begin for line in text_lines.split(source)]
    return SourceFile(source.path, edits.apply(lines), source.form, source.fixed_columns)


def _module(block: _Block, margin: str) -> Iterator[str]:
    routine = block.routines[0]
    yield f"{margin}module {block.module}"
    for name in sorted(block.arrays):
        yield f"{margin}{block.declared(routine, name)}"
    for text in block.directives() or ():
        yield f"!$homing {text}"
    data = [one for each in block.routines for one in block.data(each) or ()]
    if counters := sorted({name for one in data for name in one.counters}):
        yield f"{margin}integer, private :: {', '.join(counters)}"
    for one in data:
        yield f"{margin}{one.moved}"
    yield f"{margin}end module"


def _without(edits: Edits, unit: Unit, routine: Routine, blocks: Sequence[_Block]) -> bool:
    """Take the arrays out of the routine's own declarations and directives."""
    source = unit.source
    names = {name for block in blocks if routine in block.routines for name in block.arrays}
    commons = _commons(routine, unit)
    for statement in commons:
        text = _common([one for one in statement.members if one[1] not in names])
        edits.replace(statement.begin, statement.end, text)
    members = [(block, name) for one in commons for block, name, _ in one.members]
    emptied = {block for block, _ in members} - {block for block, name in members if name not in names}
    for begin, end, kept in _saved(unit, routine, emptied):
        edits.replace(begin, end, f"save {', '.join(kept)}" if kept else "")
    for one in moved_data(routine, names, lambda text: _number(text, routine)) or ():
        edits.replace(one.begin, one.end, one.left)
    inside = {one.begin for one in commons}
    declared: dict[tuple[int, int], set[str]] = {}
    for name in names:
        declaration = routine.declarations[name]
        places = [(declaration.statement_begin, declaration.statement_end), *declaration.elsewhere]
        for place in places:
            if place[0] not in inside:
                declared.setdefault(place, set()).add(name)
    for (begin, end), out in declared.items():
        left = without_entities(source.text[begin:end], out)
        if left is None:
            return False
        edits.replace(begin, end, left)
    said = [one for one in routine.directives if isinstance(one, d.Distribute | d.Align)]
    for where in {one.source for one in said if one.name.key in names}:
        others = [one for one in said if one.source == where and one.name.key not in names]
        begin = source.offset(where.position.line, where.position.column)
        kept_lines = "\n".join(f"!$homing {_written(one)}" for one in others)
        edits.replace(begin, source.offset(where.end_line, where.end_column), kept_lines)
    return True


def _saved(unit: Unit, routine: Routine, emptied: set[str]) -> Iterator[tuple[int, int, list[str]]]:
    """SAVE statements that name blocks which have no members any more, and what else they name."""
    for line in text_lines.split(unit.source):
        words = re.match(r"save\b\s*(?:::)?\s*(.+)", line.code.strip(), re.IGNORECASE)
        if words and routine.begin <= line.begin < routine.end and not line.openmp:
            listed = [word.strip() for word in words[1].split(",")]
            kept = [word for word in listed if re.sub(r"[/\s]", "", word.lower()) not in emptied]
            if len(kept) < len(listed) and all(word.startswith("/") for word in {*listed} - {*kept}):
                yield line.begin, line.end, kept


def _common(members: Sequence[tuple[str, str, str]]) -> str:
    """A COMMON statement with these members; nothing for none."""
    texts, before = [], None
    for block, _, text in members:
        texts.append(f", {text}" if block == before else f" /{block}/ {text}")
        before = block
    return f"common{''.join(texts)}" if texts else ""
