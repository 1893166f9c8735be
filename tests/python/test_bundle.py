"""The file with the code of a summary's modules (homing/bundle.py): it is used where it is right, and nothing
depends on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.places import TREE

#: A package as small as the finder lets it be, in a folder of its own.
SUMMARY = "import homing.run_finish, homing.report.results, homing.report.summary, homing.report.names"
LOADED = (
    "import sys; from homing import bundle; bundle.use(); "
    f"{SUMMARY}; "
    "own = [one for name, one in sys.modules.items() if name.startswith('homing.')]; "
    "print(sum(isinstance(one.__loader__, bundle._Loader) for one in own), len(own))"
)


def run(folder: Path, code: str, *flags: str, **more: str) -> str:
    given = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
    }
    words = [sys.executable, *flags, "-c", code]
    done = subprocess.run(
        words,
        cwd=folder,
        env={**given, "PYTHONPATH": str(folder), **more},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout


def loaded(folder: Path, **more: str) -> tuple[int, int]:
    """How many of homing's modules came from the file, and how many there are."""
    found, all_of_them = run(folder, LOADED, **more).split()
    return int(found), int(all_of_them)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    shutil.copytree(TREE / "homing", tmp_path / "homing", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def bundle_of(folder: Path) -> Path:
    (found,) = folder.rglob("*.bundle")
    return found


def test_a_run_that_found_no_file_leaves_one_and_the_next_uses_it(package: Path) -> None:
    assert loaded(package)[0] == 0
    run(package, f"{LOADED}; bundle.keep()")
    found, all_of_them = loaded(package)
    assert found == all_of_them - 1  # but for homing.bundle
    before = bundle_of(package).stat().st_mtime_ns
    run(package, f"{LOADED}; bundle.keep()")
    assert bundle_of(package).stat().st_mtime_ns == before
    assert list(package.rglob("*.bundle.*")) == []


def test_a_changed_source_is_not_taken_from_the_file(package: Path) -> None:
    run(package, "from homing.bundle import main; main()")
    changed = package / "homing" / "report" / "words.py"
    changed.write_text(changed.read_text(encoding="utf-8") + "\nNEW = 1\n", encoding="utf-8")
    code = LOADED + "; print(homing.report.words.NEW)"
    first, new = run(package, code).splitlines()
    assert (first.split()[0], new) == (str(loaded(package)[1] - 2), "1")
    run(package, f"{LOADED}; bundle.keep()")
    assert loaded(package)[0] == loaded(package)[1] - 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[:30],
        lambda data: b"x" + data[1:],
        lambda data: data[:16] + b"\0\0\0\0" + data[20:],  # another Python's
        lambda data: data[:36] + bytes(100) + data[136:],
        lambda data: data[:-5000] + b"\xff" * 5000,
    ],
)
def test_a_damaged_file_changes_nothing(package: Path, damage: Callable[[bytes], bytes]) -> None:
    run(package, "from homing.bundle import main; main()")
    path = bundle_of(package)
    path.write_bytes(damage(path.read_bytes()))
    run(package, LOADED)


def test_a_package_that_was_moved_tells_its_new_place(package: Path, tmp_path: Path) -> None:
    run(package, "from homing.bundle import main; main()")
    moved = tmp_path / "other"
    moved.mkdir()
    (package / "homing").rename(moved / "homing")
    code = LOADED + "; print(homing.report.words.__file__, homing.report.words.size.__code__.co_filename)"
    counts, places = run(moved, code).splitlines()
    assert int(counts.split()[0]) > 40
    assert set(places.split()) == {str(moved / "homing" / "report" / "words.py")}


def test_nothing_is_written_where_python_writes_no_bytecode(package: Path) -> None:
    run(package, f"{LOADED}; bundle.keep()", "-B")
    assert list(package.rglob("*.bundle")) == []


def test_a_folder_that_cannot_be_written_to_is_no_error(package: Path) -> None:
    (package / "homing" / "__pycache__").touch()  # root may write everywhere
    run(package, f"{LOADED}; bundle.keep()")
    run(package, f"{LOADED}; bundle.keep()", PYTHONPYCACHEPREFIX="/proc/nowhere")


def test_modules_of_an_unusual_run_do_not_have_the_file_made_again(package: Path) -> None:
    run(package, "from homing.bundle import main; main()")
    before = bundle_of(package).stat().st_mtime_ns
    run(package, f"{LOADED}; import homing.report.page_maps; bundle.keep()")
    assert bundle_of(package).stat().st_mtime_ns == before
