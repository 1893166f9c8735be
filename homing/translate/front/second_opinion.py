"""fparser reads what matters once more: where it sees another access than the front, neither is believed."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any

from fparser.two import Fortran2003, Fortran2008
from fparser.two.parser import ParserFactory
from fparser.two.utils import FortranSyntaxError, InternalSyntaxError, NoMatchError

from homing.translate.directives.model import Form
from homing.translate.front.expressions import understood
from homing.translate.front.kinds import form
from homing.translate.front.tokens import tokens
from homing.translate.positions import Problem
from homing.translate.tree import Reference, Routine, Statement, Unit, statements

#: fparser's name for each statement of ours.
_CLASSES = {
    "assignment": "Assignment_Stmt",
    "pointer": "Pointer_Assignment_Stmt",
    "call": "Call_Stmt",
    "read": "Read_Stmt",
    "write": "Write_Stmt",
    "print": "Print_Stmt",
    "allocate": "Allocate_Stmt",
    "deallocate": "Deallocate_Stmt",
    "if": "If_Stmt",
    "if then": "If_Then_Stmt",
    "else if": "Else_If_Stmt",
    "where": "Where_Stmt",
    "where then": "Where_Construct_Stmt",
    "elsewhere": "Masked_Elsewhere_Stmt",
    "forall": "Forall_Stmt",
    "forall then": "Forall_Construct_Stmt",
    "select": "Select_Case_Stmt",
    "case": "Case_Stmt",
    "return": "Return_Stmt",
    "stop": "Stop_Stmt",
    "declaration": "Type_Declaration_Stmt",
    "common": "Common_Stmt",
}
_NEW_NAME = re.compile(r"name_\d+_")
_REFUSALS = (NoMatchError, FortranSyntaxError, InternalSyntaxError)


@lru_cache(maxsize=1)
def _grammar() -> None:
    logging.getLogger("fparser").setLevel(logging.CRITICAL)
    ParserFactory().create(std="f2008")


@lru_cache(maxsize=4096)
def _parse(name: str, code: str) -> Any:
    _grammar()
    made = getattr(Fortran2008, name, None) or getattr(Fortran2003, name)
    try:
        return made(code)
    except _REFUSALS:
        return None


def declares(kind: str, code: str) -> bool:
    """Is it a declaration to tree-sitter or to fparser?"""
    return kind not in _CLASSES or understood(code) or _parse(_CLASSES[kind], code) is not None


def differences(units: Sequence[Unit], arrays: Collection[str] | None = None) -> list[Problem]:
    """Statements of Fortran units that name one of the arrays (None: any) and are read in two ways."""
    return [
        problem
        for unit in units
        if unit.form is not Form.C
        for routine in unit.routines
        for problem in _of_routine(routine, arrays)
    ]


def _of_routine(routine: Routine, arrays: Collection[str] | None) -> Iterator[Problem]:
    for statement in statements(routine.body):
        named = arrays is None or any(name.text in arrays for name in tokens(statement.code))
        if not named or statement.unread is not None or not statement.references:
            continue
        reason = _difference(statement)
        if reason is not None:
            yield routine.source.problem(statement.begin, statement.end, reason)


def _difference(statement: Statement) -> str | None:
    words = tokens(statement.code)
    what = form(words)
    name = _CLASSES.get(what.kind)
    if what.kind == "do":
        labelled = what.at < len(words) and words[what.at].kind == "number"
        name = "Label_Do_Stmt" if labelled else "Nonlabel_Do_Stmt"
    if what.kind == "select" and what.word != "case":
        name = "Select_Type_Stmt"
    if name is None:
        return None
    ours = Counter(_reading(one) for one in statement.references if one.brought is None)
    begin = words[what.start].begin
    tree = _parse(name, statement.code[begin:])
    if tree is not None:
        theirs = Counter(_accesses(tree))
    else:  # it takes some names for words of the language
        code, names = _renamed(statement, begin)
        tree = _parse(name, code)
        if tree is None:
            return f"read as {_shown(ours)} by tree-sitter, and not at all by fparser"
        theirs = Counter(_NEW_NAME.sub(lambda found: names[found[0]], one) for one in _accesses(tree))
    if ours == theirs:
        return None
    return f"read in two ways: {_shown(ours - theirs)} by tree-sitter, {_shown(theirs - ours)} by fparser"


def _renamed(statement: Statement, begin: int) -> tuple[str, dict[str, str]]:
    """The statement's text from `begin` on with other names, and what each stands for."""
    at = {place: index for index, place in enumerate(statement.places)}
    names: dict[str, str] = {}
    new: dict[str, str] = {}
    code = statement.code
    written = [reference for reference in statement.references if reference.brought is None]
    for reference in sorted(written, key=lambda one: -one.begin):
        first = at[reference.begin]
        made = new.setdefault(reference.name, f"name_{len(new)}_")
        names[made] = reference.name
        code = code[:first] + made + code[first + len(reference.name) :]
    return code[begin:], names


def _reading(reference: Reference) -> str:
    if reference.subscripts is None:
        return reference.name
    return f"{reference.name}({_plain(','.join(s.text for s in reference.subscripts))})"


def _plain(text: str) -> str:
    return "".join(text.lower().split())


def _shown(readings: Counter[str]) -> str:
    return ", ".join(sorted(readings.elements())) or "no access"


# --- fparser's tree -----------------------------------------------------------------------------------------

#: What holds no access: types, literals, formats, and names of constructs.
_QUIET = frozenset(
    ["Intrinsic_Type_Spec", "Declaration_Type_Spec", "Derived_Type_Spec", "Type_Name", "Kind_Selector",
     "Length_Selector", "Char_Selector", "Label", "Exit_Stmt", "Cycle_Stmt"]
)  # fmt: skip
#: A keyword or a variable of their own comes first.
_FIRST_IS_OWN = frozenset(
    [
        "Actual_Arg_Spec",
        "Component_Spec",
        "Ac_Implied_Do_Control",
        "Io_Implied_Do_Control",
        "Forall_Triplet_Spec",
        "Alloc_Opt",
        "Io_Control_Spec",
        "Association",
    ]
)
_CALLED = frozenset(
    ["Structure_Constructor", "Function_Reference", "Intrinsic_Function_Reference", "Part_Ref"]
)


def _accesses(node: Any) -> Iterator[str]:
    what = type(node).__name__
    if node is None or isinstance(node, str) or what in _QUIET:
        return
    if isinstance(node, list | tuple):
        for one in node:
            yield from _accesses(one)
    elif what == "Name":
        yield node.string.lower()
    elif what in _CALLED or what == "Allocation":
        yield from _with_subscripts(node)
    elif what == "Data_Ref":
        yield from _accesses(node.items[0])
        for component in node.items[1:]:
            yield from _accesses(getattr(component, "items", [None, None])[1:])
    elif what in ("Proc_Component_Ref", "Procedure_Designator"):
        yield from _accesses(node.items[0])
    elif what == "Call_Stmt":
        if type(node.items[0]).__name__ != "Name":
            yield from _accesses(node.items[0])
        yield from _accesses(node.items[1])
    elif what == "Loop_Control":
        yield from _loop_control(node)
    elif what in _FIRST_IS_OWN:
        yield from _accesses(node.items[1:])
    else:
        yield from _accesses(getattr(node, "items", None) or getattr(node, "content", None))


def _with_subscripts(node: Any) -> Iterator[str]:
    """NAME(...), whichever of an array, a function and a structure it is; NAME alone in ALLOCATE."""
    base, inside = node.items[0], node.items[1]
    if type(base).__name__ in ("Data_Ref", "Part_Ref", "Proc_Component_Ref", "Procedure_Designator"):
        yield from _accesses(base)
    elif inside is None and type(node).__name__ == "Allocation":
        yield str(base).lower()
    else:
        yield f"{_plain(str(base))}({_plain(str(inside)) if inside is not None else ''})"
    yield from _accesses(inside)


def _loop_control(node: Any) -> Iterator[str]:
    for item in node.items:
        if isinstance(item, tuple) and item and type(item[0]).__name__ == "Name":
            yield from _accesses(item[1:])
        else:
            yield from _accesses(item)
