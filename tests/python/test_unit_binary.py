"""The C++ unit tests: each GoogleTest case is one test here, so that one summary counts everything.

The program runs once, before the first case is judged; a case that has no result in its report (because the
program died in it or before it) fails with what the program printed last.
"""

from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.patience import PATIENCE

TREE = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("HOMING_UNIT_TESTS", TREE / "build" / "release" / "homing_unit_tests"))
# RapidCheck's cases are the same in every run: one that fails can be looked into, a green one stays green.
# `make test-all` sets RC_PARAMS and so draws others.
RC_PARAMS = os.environ.get("RC_PARAMS", "seed=2000")


def listed_cases() -> list[str]:
    """Names SUITE.CASE from --gtest_list_tests; a parameter's value follows a '#'."""
    if not PROGRAM.is_file():
        return []
    text = subprocess.run(
        [PROGRAM, "--gtest_list_tests"], check=True, stdout=subprocess.PIPE, text=True, timeout=PATIENCE
    ).stdout
    names: list[str] = []
    suite = ""
    for line in text.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith("  "):
            names.append(suite + name)
        elif name.endswith("."):
            suite = name
    return names


CASES = listed_cases()


class Report:
    """One run of the program: the outcome of each case, and what the program printed."""

    def __init__(self, xml: Path) -> None:
        try:
            run = subprocess.run(
                [PROGRAM, f"--gtest_output=xml:{xml}", "--gtest_color=no"],
                env={**os.environ, "RC_PARAMS": RC_PARAMS},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=PATIENCE,
            )
            self.status, self.printed = run.returncode, run.stdout
        except subprocess.TimeoutExpired as error:
            output = error.stdout or b""
            self.status = None
            self.printed = output.decode(errors="replace") if isinstance(output, bytes) else output
        self.cases: dict[str, ElementTree.Element] = {}
        if xml.is_file():
            for case in ElementTree.parse(xml).iter("testcase"):
                self.cases[f"{case.get('classname')}.{case.get('name')}"] = case

    def ended(self) -> str:
        tail = "\n".join(self.printed.splitlines()[-40:])
        how = f"exit status {self.status}" if self.status is not None else f"not after {PATIENCE} s"
        return f"{PROGRAM} ended with {how}; its last lines:\n{tail}"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return Report(tmp_path_factory.mktemp("unit") / "report.xml")


def test_the_program_was_built_and_ends_well(report: Report) -> None:
    assert CASES, f"{PROGRAM} lists no tests"
    failed = [name for name, case in report.cases.items() if case.find("failure") is not None]
    # Status 1 with failed cases is told by those cases; anything else is the program's own trouble.
    assert report.status == (1 if failed else 0), report.ended()


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, report: Report) -> None:
    case = report.cases.get(name)
    assert case is not None, f"no result of {name}: {report.ended()}"
    failures = [failure.text or failure.get("message", "") for failure in case.findall("failure")]
    assert not failures, "\n".join(failures)
    if case.get("status") == "notrun" or case.get("result") == "skipped":
        skipped = case.find("skipped")
        pytest.skip(skipped.get("message", "") if skipped is not None else "disabled")
