"""Completion tried in the shells themselves, where they are here (make test-all installs them)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from homing import completion
from tests.patience import PATIENCE

#: Asks zsh, in a terminal of its own, as a user does.
_ZSH = """zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; unsetopt zle_bracketed_paste; fpath=($1 \\$fpath); autoload -U compinit"
zpty -w z "compinit -u -D; print READY"
zpty -r z out '*READY*READY*'
zpty -w -n z $'homing run --mech\\t'
zpty -r z out '*--mechanism*' && print FOUND
zpty -d z
"""


def told(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return done.stdout.split("\n")


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not here")
def test_fish_completes_options_and_words(tmp_path: Path) -> None:
    script = tmp_path / "homing.fish"
    script.write_text(completion.script("fish"))

    def complete(line: str) -> list[str]:
        found = told(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"])
        return [one.partition("\t")[0] for one in found if one]

    assert complete("homing run --mech") == ["--mechanism"]
    mechanisms = ["hybrid", "iterative", "next-touch", "observe", "record-replay", "sampling"]
    assert complete("homing run --mechanism ") == mechanisms


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not here")
def test_zsh_completes_an_option(tmp_path: Path) -> None:
    (tmp_path / "_homing").write_text(completion.script("zsh"))
    ask = tmp_path / "ask"
    ask.write_text(_ZSH)
    assert "FOUND" in told(["zsh", "-f", str(ask), str(tmp_path)])
