"""Fortran: derived types of which parts, as bytes, are not all, or that the runtime cannot get."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from homing.translate.tree import Routine, Unit

_OF_TYPE = re.compile(r"\s*(?:type|class)\s*\(\s*(\w+)", re.IGNORECASE)
_DEFINED = re.compile(
    r"^[ \t]*type\b(?![ \t]*\()(?P<said>[^\n]*?)(?:::|[ \t])[ \t]*(?P<name>\w+)[ \t]*$(?P<body>.*?)"
    r"^[ \t]*end[ \t]*type\b",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_COMMENT = re.compile(r"![^\n]*|^[*cC][^\n]*", re.MULTILINE)
_CONTINUED = re.compile(r"&[ \t]*\n[ \t]*&?|\n {5}[^\s0]")
_PROCEDURES = re.compile(r"^[ \t]*contains\b", re.MULTILINE | re.IGNORECASE)
_OWN = re.compile(r"^[^\n:]*,[ \t]*(allocatable|pointer)\b[^\n]*?::[ \t]*(\w+)", re.MULTILINE | re.IGNORECASE)
_INNER = re.compile(r"^[ \t]*(?:type|class)[ \t]*\([ \t]*(\w+)", re.MULTILINE | re.IGNORECASE)
_DECLARED = re.compile(
    r"^[ \t]*(?P<type>(?:type|class)[ \t]*\([ \t]*\w+|[a-z]+)(?P<rest>[^\n]*)$", re.MULTILINE | re.IGNORECASE
)
_DEFAULT = re.compile(r"::[^\n]*=")
_EXTENDS = re.compile(r"\bextends\s*\(\s*(\w+)", re.IGNORECASE)


class DerivedTypes:
    """Those that the files given define."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._units = units
        self._known: dict[str, list[tuple[str, str]]] | None = None

    def why_not(self, routine: Routine, type_text: str, in_place: bool) -> str:
        """Why arrays of a type cannot be distributed; nothing if they can. in_place: they stay where they
        are."""
        name = self._name(routine, type_text)
        own = "" if in_place else next(self._components(name, frozenset()), "")
        if type_text.lower().lstrip().startswith("class"):
            return "is polymorphic (CLASS): give it one type"
        if own:
            return f"has components with memory of their own ({own}), which its parts do not bring"
        if self._bound(name, frozenset()):
            return (
                "is of a type with procedures of its own, which Fortran gives no routine that takes any type"
            )
        return ""

    def may_have_defaults(self, routine: Routine, type_text: str) -> bool:
        """Does the type give components values where nothing else does? Where it is not known, it may."""
        return bool(_OF_TYPE.match(type_text)) and self._defaults(self._name(routine, type_text), frozenset())

    def _defaults(self, name: str, seen: frozenset[str]) -> bool:
        known = self._types().get(name, ())
        if name in seen or len(known) != 1:
            return name not in seen
        said, body = known[0]
        own = _PROCEDURES.split(body)[0]
        inner = [*_EXTENDS.findall(said), *_INNER.findall(own)]
        return bool(_DEFAULT.search(own)) or any(self._defaults(one.lower(), seen | {name}) for one in inner)

    def component_type(self, routine: Routine, type_text: str, components: Sequence[str]) -> str:
        """The type of `...%row%tag`, for a variable of this type; nothing where it is not known."""
        name = self._name(routine, type_text)
        for component in components:
            type_text = self._declared(name, component, frozenset())
            inner = _OF_TYPE.match(type_text)
            name = inner[1].lower() if inner else ""
        return type_text.lower()

    def _declared(self, name: str, component: str, seen: frozenset[str]) -> str:
        """The type of a component, its own or of the type that it extends."""
        known = self._types().get(name, ()) if name not in seen else ()
        if len(known) != 1:
            return ""
        said, body = known[0]
        for one in _DECLARED.finditer(_PROCEDURES.split(body)[0].replace(";", "\n")):
            names = re.sub(r"\([^()]*\)", "", one["rest"].split("::")[-1])
            if re.search(rf"\b{re.escape(component)}\b\s*(?![\w(])", names, re.IGNORECASE):
                return one["type"]
        parent = _EXTENDS.search(said)
        return self._declared(parent[1].lower(), component, seen | {name}) if parent else ""

    def _name(self, routine: Routine, type_text: str) -> str:
        """What the type is called where it is defined."""
        found = _OF_TYPE.match(type_text)
        name = found[1].lower() if found else ""
        scope: Routine | None = routine
        while scope is not None:
            for _, original, local in scope.names_by_use():
                if local == name:
                    name = original.lower()
            scope = scope.parent
        return name

    def _bound(self, name: str, seen: frozenset[str]) -> bool:
        """Has it procedures, or one that it extends?"""
        return any(
            _PROCEDURES.search(body)
            or any(self._bound(one.lower(), seen | {name}) for one in _EXTENDS.findall(said))
            for said, body in (self._types().get(name, ()) if name not in seen else ())
        )

    def _components(self, name: str, seen: frozenset[str]) -> Iterator[str]:
        for said, body in self._types().get(name, ()) if name not in seen else ():
            for word, component in _OWN.findall(_PROCEDURES.split(body)[0]):
                yield f"{word.upper()} '{component}'"
            for inner in [*_EXTENDS.findall(said), *_INNER.findall(body)]:
                yield from self._components(inner.lower(), seen | {name})

    def _types(self) -> dict[str, list[tuple[str, str]]]:
        """What stands in the heads and bodies of the definitions, by the types' names."""
        if self._known is None:
            self._known = {}
            for unit in self._units:
                if unit.form.fortran:
                    text = _CONTINUED.sub("", _COMMENT.sub("", unit.source.text))
                    for one in _DEFINED.finditer(text):
                        self._known.setdefault(one["name"].lower(), []).append((one["said"], one["body"]))
        return self._known
