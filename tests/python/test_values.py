"""homing.values makes classes that behave as those of `dataclasses`; homing.late compiles when asked."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from typing import Any

import pytest

from homing import late, values
from tests.places import TREE


@values.dataclass(frozen=True)
class Base:
    number: int
    words: tuple[str, ...] = ()


@values.dataclass(frozen=True)
class Derived(Base):
    more: str = "more"

    @property
    def double(self) -> int:
        return 2 * self.number


@values.dataclass
class Open:
    name: str
    items: list[int] = values.field(default_factory=list)


def test_values_are_given_by_place_and_by_name() -> None:
    one = Derived(1, more="x")
    assert (one.number, one.words, one.more, one.double) == (1, (), "x", 2)
    assert Derived(1, ("a",), "y") == Derived(number=1, words=("a",), more="y")


@pytest.mark.parametrize("arguments", [{}, {"name": 1, "other": 2}])
def test_a_missing_and_an_unknown_value_are_errors(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Open(**arguments)
    with pytest.raises(TypeError):
        Open("a", [], 3)  # type: ignore[call-arg]


def test_each_value_has_a_list_of_its_own() -> None:
    one, other = Open("a"), Open("a")
    assert one == other
    one.items.append(1)
    assert other.items == []
    assert one != other
    with pytest.raises(TypeError):
        hash(one)


def test_frozen_values_stay_and_can_be_keys() -> None:
    one = Base(1, ("a",))
    with pytest.raises(AttributeError):
        one.number = 2  # type: ignore[misc]
    assert {one: 1}[Base(1, ("a",))] == 1
    assert one != Derived(1, ("a",))
    assert values.replace(one, number=3) == Base(3, ("a",))
    assert repr(one) == "Base(number=1, words=('a',))"


def test_dataclasses_knows_them() -> None:
    one = Open("a", [1])
    assert dataclasses.is_dataclass(one)
    assert dataclasses.asdict(one) == {"name": "a", "items": [1]}
    assert [field.name for field in dataclasses.fields(Derived)] == ["number", "words", "more"]
    assert dataclasses.replace(Derived(1), more="z").more == "z"


def test_a_late_pattern_is_a_pattern() -> None:
    one = late.pattern("a(b+)")
    found = one.search("xabbb")
    assert found is not None and found[1] == "bbb"
    assert one.sub("-", "abab") == "--"


def test_a_summary_imports_nothing_that_is_slow() -> None:
    """Modules that nothing in a usual summary needs; the first ones took a tenth of it, unnoticed."""
    wanted = "homing.run_finish, homing.report.results, homing.report.summary, homing.report.names"
    code = f"import {wanted}, sys; print(*sys.modules)"
    words = [sys.executable, "-S", "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(TREE)}
    loaded = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.split()
    slow = {
        "dataclasses",
        "inspect",
        "ast",
        "tomllib",
        "typer",
        "rich",
        "numpy",
        "elftools",
        "pathlib",
        "shutil",
    }
    assert slow & {*loaded} == set()
