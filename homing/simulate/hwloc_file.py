"""The elements of an XML file of hwloc (lstopo's, hwloc 1, 2 and 3), and the numbers and sets in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

#: Linux has numbers of CPUs and nodes below these.
MOST_CPUS = 1 << 16
_ALL = (1 << MOST_CPUS) - 1
_MOST_INDEX = 1 << 20
MOST_NUMBER = 1 << 63


class Wrong(Exception):
    """What is wrong with a description, in words."""


@dataclass(eq=False)
class Element:
    """An element of the file: its attributes, its text, and what is in it."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None
    children: list[Element] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The type of an object, by its name in hwloc 2."""
        name = self.attributes.get("type", "")
        if name == "Cache":  # hwloc 1
            inner = "i" if self.attributes.get("cache_type") == "2" else ""
            return f"L{self.attributes.get('depth', '')}{inner}Cache"
        return {"Socket": "Package", "Node": "NUMANode"}.get(name, name)

    def number(self, name: str, least: int = 0, most: int = MOST_NUMBER) -> int | None:
        """An attribute that is a whole number; None where it is not there."""
        text = self.attributes.get(name)
        if text is None:
            return None
        return whole(text, f"{self.kind or self.tag}: {name}", least, most)

    def inside(self, tag: str = "object") -> Iterator[Element]:
        """All elements of this name in it, in the order of the file."""
        waiting = list(reversed(self.children))
        while waiting:
            one = waiting.pop()
            if one.tag == tag:
                yield one
            waiting += reversed(one.children)

    def around(self) -> Iterator[Element]:
        """The objects around it, from the inside out."""
        at = self.parent
        while at is not None and at.tag == "object":
            yield at
            at = at.parent


def whole(text: str, what: str, least: int, most: int) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,30}\s*", text, re.ASCII) or not least <= int(text) <= most:
        raise Wrong(f"{what} is {shown(text)}, which is no whole number from {least} to {most}")
    return int(text)


def shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")


def parse(data: bytes) -> Element:
    root: Element | None = None
    at: Element | None = None

    def begin(tag: str, attributes: dict[str, str]) -> None:
        nonlocal root, at
        one = Element(tag, attributes, at)
        if at is None:
            root = one
        else:
            at.children.append(one)
        at = one

    def end(_: str) -> None:
        nonlocal at
        at = at.parent if at else None

    def add_text(text: str) -> None:
        if at is not None:
            at.text.append(text)

    def refuse_entity(name: str, *_: object) -> None:
        # hwloc writes none, and they can stand for any amount of text, or for other files.
        raise Wrong(f"declares an entity ({name}): not an XML file of hwloc")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = add_text
    parser.EntityDeclHandler = refuse_entity
    parser.Parse(data, True)
    if root is None or root.tag != "topology":
        raise Wrong("not an XML file of hwloc: there is no topology in it")
    return root


def bits(text: str, what: str) -> int:
    """A bitmap of hwloc ("0x1,0x00000003", words of 32 bits, the highest first) as a number."""
    value = 0
    words = text.strip().split(",")
    if words[0] == "0xf...f":  # all bits above
        value = _ALL
        del words[0]
    if len(words) > MOST_CPUS // 32:
        raise Wrong(f"{what} has more than {MOST_CPUS} bits")
    for word in words:
        if not re.fullmatch(r"(0x)?[0-9a-fA-F]{0,8}", word, re.ASCII):
            raise Wrong(f"{what} is {shown(text)}, which is no set of hwloc")
        value = value << 32 | int(word.removeprefix("0x") or "0", 16)
    return value & _ALL


def cpuset(one: Element) -> int:
    """The CPUs of an object: its own set, else that of the object around it."""
    for candidate in (one, *one.around()):
        text = candidate.attributes.get("cpuset")
        if text is not None:
            return bits(text, f"{candidate.kind}: cpuset")
    return 0


def members(bits: int) -> list[int]:
    return [at for at, bit in enumerate(reversed(bin(bits)[2:])) if bit == "1"]


def index(one: Element) -> int:
    found = one.number("os_index", most=_MOST_INDEX)
    if found is None:
        raise Wrong(f"{one.kind}: os_index is missing")
    return found
