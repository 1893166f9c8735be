"""Touches of real programs, shown to the model (benchmarks/replay.cpp)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE

TREE = Path(__file__).resolve().parents[2]
REPLAY = TREE / "build" / "release" / "benchmarks" / "replay"
RECORDINGS = sorted((TREE / "tests" / "recordings").glob("*.touches"))


def replay(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([REPLAY, *words], capture_output=True, text=True, timeout=PATIENCE)


def table(path: Path) -> dict[str, Any]:
    done = replay(path)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


#: What the learner of 0.1.0 made of the same touches, measured at commit 06324a4 before it was deleted:
#: `serial` and `right` after so many touches.
OF_0_1_0 = {
    "comd": {"4": (19.2, 92.7), "8": (19.2, 92.7), "20": (19.3, 92.6)},
    "hpccg": {"4": (22.8, 99.7), "8": (22.8, 99.8), "20": (22.6, 99.8)},
    "lulesh": {"4": (25.5, 98.6), "8": (25.4, 98.6), "20": (26.5, 98.6)},
    "minife": {"4": (24.6, 98.9), "8": (24.5, 98.9), "20": (24.5, 98.9)},
}


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_few_touches_tell_more_than_the_quorum_of_the_old_learner(path: Path) -> None:
    found = table(path)["after"]
    for touches, (serial, right) in OF_0_1_0[path.stem].items():
        assert found[touches]["serial"] > serial + 2, (touches, found[touches])
        # Pages that lie right stay. The worst: 3.1 points, of CoMD after 8 touches an area.
        assert found[touches]["right"] > right - 4, (touches, found[touches])


@pytest.mark.parametrize("name", ["lulesh", "hpccg"])
def test_eight_touches_an_area_bring_programs_of_blocks_home(name: str) -> None:
    found = table(TREE / "tests" / "recordings" / f"{name}.touches")
    assert found["unmoved"] < 30
    assert found["after"]["8"]["serial"] > 90
    assert found["after"]["8"]["right"] > 96


def test_replay_says_touch_by_touch_what_would_move(tmp_path: Path) -> None:
    path = tmp_path / "block.touches"
    asked = [int(1000 * ((0.3 + 0.618034 * index) % 1)) for index in range(16)]  # in the order homing asks in
    touches = [f"touch 0 {page} {page // 250} 1 {index} 0 0" for index, page in enumerate(asked)]
    path.write_text("\n".join(["team 0 1 2 3", "area 0 1000 u", *touches]))
    said = replay(path, "steps").stdout
    assert "BLOCK over 4 threads" in said and "750 of 1000 granules, 250 to node 1" in said
    first = int(next(line for line in said.splitlines() if "750 of 1000" in line).split()[1].rstrip(":"))
    assert first <= 8, "as many as tell BLOCK"


def test_replay_refuses_what_is_no_recording(tmp_path: Path) -> None:
    broken = tmp_path / "broken.touches"
    for text, said in (
        ("area 0 10 u\ntouch 0 3 0 0 0\n", "a touch outside"),
        ("team 0 1\narea 0 10 u\ntouch 0 10 0 0 0\n", "a touch outside"),
        ("team 0 1\nmove 3\n", "unknown line"),
        ("", "no team"),
    ):
        broken.write_text(text)
        done = replay(broken)
        assert done.returncode == 2 and said in done.stderr, (text, done.stderr)
    assert replay(tmp_path / "absent").returncode == 2
    assert replay().returncode == 2
    refused = replay(RECORDINGS[0], "belief")
    assert refused.returncode == 2 and refused.stderr == "usage: replay FILE [steps]\n"
