"""Help, man pages, completion and docs/variables.md come from the tables, and are of use as they are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from homing import completion, help, manual
from homing.cli import COMMANDS, main
from homing.errors import UserError
from homing.options import load_options
from tests.patience import PATIENCE
from tests.python.conftest import TREE, Command

#: A screen, at 80 columns.
MOST_LINES = 45


@pytest.mark.parametrize("name", help.SCREENS)
def test_each_group_of_the_help_is_a_screen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = manual.run_screen(name).splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= 80


def test_every_option_is_on_one_screen() -> None:
    screens = {name: manual.run_screen(name) for name in help.SCREENS}
    for option in load_options():
        if option.flag:
            row = re.compile(rf"^  {option.flag}(?![-\w])", re.MULTILINE)
            found = [name for name, text in screens.items() if row.search(text)]
            assert found == [option.group], option.flag
    whole = manual.run_screen("all")
    assert all(f"{name}: " in whole for name in help.SCREENS)


def test_a_screen_that_is_not_there(homing: Command) -> None:
    done = homing("run", "--help", "nope")
    assert done.returncode == 2 and done.stderr.startswith("homing run: --help nope: must be one of common,")


def test_the_short_flag_and_the_first_screen(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["-h"], ["run", "-h"], ["report", "-h"], ["bench", "-h"], ["lab", "-h"]):
        assert main(words) == 0
        short = capsys.readouterr().out
        assert main([*words[:-1], "--help"]) == 0
        assert capsys.readouterr().out == short
        assert "usage: homing" in short


def test_help_needs_no_typer() -> None:
    code = "import sys; from homing.cli import main; main(['-h']); sys.exit('typer' in sys.modules)"
    words = ["python3", "-c", code]
    assert subprocess.run(words, cwd=TREE, stdout=subprocess.DEVNULL, timeout=PATIENCE).returncode == 0


# Man pages


def test_man_pages_are_clean(tmp_path: Path) -> None:
    manual.write(tmp_path)
    pages = sorted((tmp_path / "man" / "man1").iterdir())
    assert {page.stem for page in pages} == {"homing", *(f"homing-{name}" for name in COMMANDS)}
    if not shutil.which("groff"):
        pytest.skip("groff is not here")
    for page in pages:
        words = ["groff", "-man", "-Tascii", "-ww", "-z", str(page)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
        assert (done.returncode, done.stderr) == (0, ""), page.name


def test_the_manual_has_every_option_and_variable() -> None:
    page, run = manual.man_page(), manual.command_page(manual.commands("run")["run"])
    for option in load_options():
        assert option.env in page
        assert option.flag.replace("-", "\\-") in run


# Completion


def complete(script: Path, *words: str) -> list[str]:
    """What bash would offer for the last word."""
    quoted = " ".join(f"'{word}'" for word in ("homing", *words))
    begin = f'source "{script}"; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; '
    code = begin + '_homing; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_flags_and_words(tmp_path: Path) -> None:
    script = tmp_path / "homing.bash"
    script.write_text(completion.script("bash"))
    assert complete(script, "re") == ["report"]
    assert complete(script, "run", "--mech") == ["--mechanism"]
    mechanisms = ["iterative", "hybrid", "record-replay", "sampling", "next-touch", "observe"]
    assert complete(script, "run", "--mechanism", "") == mechanisms
    assert "tru" not in " ".join(complete(script, "run", "--", "--rec"))
    assert complete(script, "lab", "--nod") == ["--nodes"]


@pytest.mark.parametrize("shell", completion.PLACES)
def test_scripts_of_shells_are_well_formed(shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not here")
    script = tmp_path / "script"
    script.write_text(completion.script(shell))
    assert subprocess.run([shell, "-n", str(script)], timeout=PATIENCE).returncode == 0


def test_another_shell() -> None:
    with pytest.raises(UserError, match="--completion csh: must be one of bash, zsh, fish"):
        completion.script("csh")


# Variables

#: How sources ask for a variable.
ASKED = re.compile(
    r"(?:getenv\(|environ\.get\(|environ\[|environ\.pop\(|environment\.get\(|variables\.get\(|\.has\()\s*"
    r"\"([A-Z][A-Z0-9_]+)\""
)


def asked_for() -> set[str]:
    found: set[str] = set()
    for folder in ("src", "simulator", "lab", "homing"):
        for file in (TREE / folder).rglob("*"):
            if file.suffix in (".cpp", ".hpp", ".c", ".py") and "node_modules" not in file.parts:
                found |= set(ASKED.findall(file.read_text(encoding="utf-8", errors="replace")))
    return found


def test_every_variable_that_is_read_is_documented() -> None:
    documented = {option.env for option in load_options()}
    documented |= {name for names, _ in manual.load_variables() for name in names}
    assert asked_for() - documented == set()


def test_no_variable_is_documented_that_nobody_reads() -> None:
    sources = "".join(
        file.read_text(encoding="utf-8", errors="replace")
        for folder in ("src", "simulator", "lab", "homing")
        for file in (TREE / folder).rglob("*")
        if file.suffix in (".cpp", ".hpp", ".c", ".py", ".sh")
    )
    names = [name for names, _ in manual.load_variables() for name in names]
    assert [name for name in names if name not in sources] == []


def test_the_page_of_variables_is_that_of_the_tables() -> None:
    page = (TREE / "docs" / "variables.md").read_text(encoding="utf-8")
    assert page == manual.variables_page(), "python -m homing.manual > docs/variables.md"


# Standard output for files


def test_a_dash_is_standard_output(homing: Command, tmp_path: Path) -> None:
    done = homing("run", "--json", "-", "--summary", "none", "--", "true")
    assert done.stdout.startswith("{") and '"exit_status": 0' in done.stdout
    assert "nothing was done" in homing("run", "--summary", "-", "--", "true").stdout
    refused = homing("run", "--record", "-", "--", "true")
    assert refused.returncode == 2 and "a record is no stream" in refused.stderr
    assert not (tmp_path / "-").exists()
