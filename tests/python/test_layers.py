"""The folders of src/ depend on each other downwards only: docs/architecture.md says what each is for."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.places import TREE

#: What the files of a folder may include, beside their own folder's. From the lowest to the highest.
BELOW = {
    "base": (),
    "model": ("base",),
    "record": ("base",),
    "kernel": ("base", "model", "record"),
    "machine": ("base", "model", "record", "kernel"),
    "launcher": ("base", "record"),
    "tasks": ("base", "kernel", "machine"),
    "areas": ("base", "model", "record", "kernel", "machine"),
    "sources": ("base", "model", "record", "kernel", "machine", "areas"),
    "engine": ("base", "model", "record", "kernel", "machine", "areas", "sources"),
    "first_touch": ("base", "model", "record", "kernel", "machine", "areas", "sources"),
    "counters": ("base", "model", "record", "kernel", "machine", "areas", "sources", "engine"),
    "phases": ("base", "model", "record", "kernel", "machine", "areas", "sources", "engine", "counters"),
    "sampling": ("base", "model", "record", "kernel", "machine", "areas", "sources", "engine", "counters"),
    "hooks": (
        *("base", "model", "record", "kernel", "machine", "areas", "sources", "first_touch"),
        *("engine", "counters", "phases", "sampling", "tasks"),
    ),
}
#: (file, what it includes): why.
EXCEPTIONS: dict[tuple[str, str], str] = {}

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def includes(source: Path) -> Iterator[tuple[str, str]]:
    """(file, what it includes), both from the folder `source`, of every file of the library there. Files that
    the build makes and the public headers (include/) are none of these folders'."""
    for file in sorted(source.rglob("*")):
        if file.suffix in (".cpp", ".hpp", ".S"):
            for included in _INCLUDE.findall(file.read_text()):
                if "/" in included and not included.startswith("homing/"):
                    yield str(file.relative_to(source)), included


def upward(source: Path) -> set[tuple[str, str]]:
    found = set()
    for file, included in includes(source):
        folder, other = Path(file).parts[0], Path(included).parts[0]
        if other != folder and other not in BELOW[folder]:
            found.add((file, included))
    return found


def test_folders_include_downwards_only() -> None:
    assert upward(TREE / "src") == set(EXCEPTIONS)


def test_the_table_has_every_folder_and_no_cycle() -> None:
    assert {file.relative_to(TREE / "src").parts[0] for file in (TREE / "src").rglob("*.?pp")} == set(BELOW)
    order = list(BELOW)
    for folder, below in BELOW.items():
        assert all(order.index(other) < order.index(folder) for other in below)


def test_what_is_included_exists() -> None:
    assert [pair for pair in includes(TREE / "src") if not (TREE / "src" / pair[1]).is_file()] == []


@pytest.mark.parametrize("line", ['#include "engine/engine.hpp"', '  # include "hooks/export.hpp" // why'])
def test_an_include_that_goes_up_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "costs.cpp").write_text(f'#include "model/costs.hpp"\n{line}\n#include <vector>\n')
    assert {file for file, _ in upward(tmp_path)} == {"model/costs.cpp"}
