"""The constants that the model and the engine decide by: few, in one file, each with unit and origin."""

import re
from dataclasses import dataclass

import pytest

from tests.places import TREE

TUNING = TREE / "src" / "model" / "tuning.hpp"
MOST = 60
#: Words of which the comment before a constant has one: what is counted or measured.
UNITS = re.compile(
    r"\b(seconds?|touches|pages|granules|events|iterations|rounds|threads|references|fits|areas|blocks|steps"
    r"|candidates|parts|chances|counts|switch|probabilit\w+|share|log|times|factor)\b",
    re.IGNORECASE,
)
#: ... and where it comes from: there, or in the heading of the section.
ORIGINS = re.compile(
    r"\b(spike|table|tests?|guest|by reason|measured|measures|benchmarks?|lulesh|bench)\b", re.IGNORECASE
)
_LITERAL = re.compile(r"(?<![\w.])\.?\d")


@dataclass
class Constant:
    name: str
    value: str
    comment: str
    heading: str

    @property
    def is_derived(self) -> bool:
        """Made of other constants only?"""
        return not _LITERAL.search(re.sub(r"\b\w+<[^<>]*>", "", self.value))


def constants(text: str) -> list[Constant]:
    """Those of a header. A comment is about all constants up to the next comment; a heading, which begins
    with two slashes, about all up to the next one."""
    found: list[Constant] = []
    heading = comment = ""
    lines = iter(text.splitlines())
    before = ""
    for line in lines:
        if line.startswith("///"):
            comment = f"{comment} {line[4:]}" if before.startswith("///") else line[4:]
        elif line.startswith("//"):
            heading = f"{heading} {line[3:]}" if before.startswith("//") else line[3:]
        elif line.startswith("inline constexpr"):
            whole = line
            while ";" not in whole:
                whole += " " + next(lines).strip()
            named = re.match(r"inline constexpr .*?(\w+)\s*(?:=|\{)(.*);", whole)
            assert named, whole
            found.append(Constant(named[1], named[2], comment, heading))
        before = line
    return found


def test_there_are_few() -> None:
    own = [one.name for one in constants(TUNING.read_text()) if not one.is_derived]
    assert len(own) <= MOST, own


def test_each_has_a_unit_and_an_origin() -> None:
    for one in constants(TUNING.read_text()):
        if one.is_derived:
            continue
        assert UNITS.search(one.comment), f"{one.name}: no unit in '{one.comment}'"
        assert ORIGINS.search(one.comment) or ORIGINS.search(one.heading), f"{one.name}: no origin"


def test_a_constant_is_used() -> None:
    code = "\n".join(
        file.read_text() for file in sorted((TREE / "src").rglob("*.?pp")) if file.name != TUNING.name
    )
    own = TUNING.read_text()
    for one in constants(own):
        uses = len(re.findall(rf"\b{one.name}\b", code)) + len(re.findall(rf"\b{one.name}\b", own)) - 1
        assert uses > 0, f"{one.name} decides nothing"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("/// Seconds.\ninline constexpr double a = 1;\ninline constexpr int b = a * 2;\n", ["a", "b"]),
        ("inline constexpr std::array<double, 2> both{.1,\n    .2};\n", ["both"]),
    ],
)
def test_constants_are_found(text: str, names: list[str]) -> None:
    assert [one.name for one in constants(text)] == names


def test_what_is_made_of_others_is_no_constant_of_its_own() -> None:
    text = "inline constexpr std::size_t all = a.size() * b.size();\ninline constexpr int b = 2 * a;\n"
    assert [one.is_derived for one in constants(text)] == [True, False]
