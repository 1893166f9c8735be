"""What messages and advice of reports tell a user to type is known to the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer

from homing.cli import COMMANDS
from homing.options import load_options
from homing.parser import build
from tests.places import TREE

#: A command of homing with what follows it, up to the end of the sentence's part.
COMMAND = re.compile(r"\bhoming (run|report|doctor|lab|cc|machine|translate|bench|[a-z]+(?= --))([^.;:,]*)")
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)(?:[ =]([a-z-]+))?")
#: Options of other programs.
FOREIGN = re.compile(r"\bnumactl( --[a-z]+(=\S+)?)+")


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts that a module can print: its constants, without documentation; what is filled in is `{}`."""
    tree = ast.parse(path.read_text())
    told = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            told |= {id(part) for part in node.values}
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno, "".join(str(part) for part in parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.lineno, node.value


@cache
def options(command: str) -> frozenset[str]:
    """The options that a command knows."""
    group = typer.main.get_command(build({command}))
    return frozenset(one for param in group.commands[command].params for one in param.opts)  # type: ignore[attr-defined]


@cache
def choices() -> dict[str, tuple[str, ...]]:
    """The values that an option of `homing run` may have, where they are words."""
    return {one.flag: one.choices for one in load_options() if one.flag}


def mistakes(text: str) -> Iterator[str]:
    """Commands, options and values in a text that the command line does not know."""
    text = FOREIGN.sub("", text)
    for command in COMMAND.finditer(text):
        if command[1] not in COMMANDS:
            yield f"homing {command[1]}"
            continue
        for option in OPTION.finditer(command[2]):
            if f"--{option[1]}" not in options(command[1]):
                yield f"homing {command[1]} --{option[1]}"
    for option in OPTION.finditer(text):
        flag = f"--{option[1]}"
        if flag not in options("run") | options("report"):
            yield flag
        elif (allowed := choices().get(flag)) and option[2] and option[2] not in allowed:
            yield f"{flag} {option[2]}"


def test_commands_and_options_that_reports_tell_are_known() -> None:
    found = {
        f"{path.name}:{line}": wrong
        for path in sorted((TREE / "homing/report").rglob("*.py"))
        for line, text in texts(path)
        if (wrong := list(mistakes(text)))
    }
    assert not found


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("or homing run --place interleave where", ["homing run --place", "--place"]),
        ("or homing rnu --bind", ["homing rnu"]),
        ("--mechanism watch moves nothing", ["--mechanism watch"]),
        ("numactl --interleave=all, or homing run --bind: --mechanism observe (--guard on)", []),
    ],
)
def test_what_the_command_line_does_not_know_is_found(text: str, wrong: list[str]) -> None:
    assert list(mistakes(text)) == wrong
