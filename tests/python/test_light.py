"""homing.light behaves as the parts of the standard library that it stands for."""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from homing import light
from tests.places import TREE


class Other(Exception):
    pass


def told(manager: Callable[..., Any], raised: BaseException | None, caught: type[BaseException]) -> list[str]:
    """What happens, in order, around a block that raises; the block's manager catches `caught`."""
    said: list[str] = []

    @manager  # type: ignore[untyped-decorator,unused-ignore]
    def around(word: str) -> Iterator[str]:
        said.append(f"begin {word}")
        try:
            yield "value"
        except caught as error:
            said.append(f"caught {type(error).__name__}")
            if isinstance(error, KeyError):
                raise Other from error
        finally:
            said.append("end")

    try:
        with around("word") as value:
            said.append(value)
            if raised is not None:
                raise raised
    except BaseException as error:
        said.append(f"raised {error!r} of {error.__cause__!r}, the same: {error is raised}")
    return said


@pytest.mark.parametrize(
    "raised", [None, ValueError("x"), KeyError("y"), StopIteration(3), KeyboardInterrupt(), RuntimeError("z")]
)
@pytest.mark.parametrize("caught", [ValueError, KeyError, Other, RuntimeError])
def test_contexts_end_as_those_of_contextlib(
    raised: BaseException | None, caught: type[BaseException]
) -> None:
    assert told(light.contextmanager, raised, caught) == told(contextlib.contextmanager, raised, caught)


def test_errors_of_these_kinds_only_are_suppressed() -> None:
    with light.suppress(OSError, ValueError):
        raise FileNotFoundError
    with pytest.raises(KeyError), light.suppress(OSError):
        raise KeyError
    with light.suppress():
        pass


def test_a_property_is_computed_once() -> None:
    class Value:
        asked = 0

        @light.cached_property
        def doubled(self) -> int:
            """The words."""
            self.asked += 1
            return 2 * self.asked

    one, other = Value(), Value()
    assert (one.doubled, one.doubled, one.asked, other.asked) == (2, 2, 1, 0)
    assert Value.doubled.__doc__ == "The words."


@pytest.mark.parametrize("decorate", [light.lru_cache, functools.lru_cache])
def test_the_values_used_longest_ago_are_forgotten(decorate: Any) -> None:
    asked: list[int] = []

    @decorate(maxsize=2)  # type: ignore[untyped-decorator,unused-ignore]
    def twice(number: int) -> int:
        asked.append(number)
        return 2 * number

    assert [twice(one) for one in (1, 2, 1, 3, 1, 2)] == [2, 4, 2, 6, 2, 4]
    assert asked == [1, 2, 3, 2]
    twice.cache_clear()
    twice(1)
    assert asked == [1, 2, 3, 2, 1]


@pytest.mark.parametrize(
    "text", ['{"a": [1, 2.5, null, true, "\\u00e4\\n"]}', b'["\xc3\xa4"]', " [1]\n", "NaN", b'"\xed\xa0\x80"']
)
def test_texts_are_read_as_json_reads_them(text: str | bytes) -> None:
    assert repr(light.loads(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", ["", "[1", "[1] 2", '{"a" 1}', '"a\nb"', b"\xff", "nul", '"\\x"'])
def test_what_is_wrong_in_a_text_is_told_as_json_tells_it(text: str | bytes) -> None:
    with pytest.raises(ValueError) as known:
        json.loads(text)
    with pytest.raises(type(known.value)) as found:
        light.loads(text)
    assert str(found.value) == str(known.value)


#: What takes long to import, and what a usual summary must do without.
LONG = {"argparse", "collections", "contextlib", "dataclasses", "enum", "functools", "json", "numpy", "re"}
LONG |= {"signal", "typing", "pathlib", "tempfile", "inspect", "rich", "typer", "elftools"}
SUMMARY = "import homing.run_finish, homing.report.results, homing.report.summary, homing.report.names"


def test_a_summary_imports_nothing_that_takes_long() -> None:
    code = f"import sys; before = {{*sys.modules}}; {SUMMARY}; print(*({{*sys.modules}} - before))"
    found = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=TREE, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "homing.report.summary" in found
    assert LONG.isdisjoint(found)
