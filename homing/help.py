"""The help of the command, as plain text of any width: what Typer prints is neither grouped nor quick."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homing import __version__

#: Where the second column begins, where the first leaves room.
_SECOND = 28
_WIDTH = 80
#: Words, flags and commands are not cut, at a hyphen neither.
_WHOLE_WORDS: Any = {"break_long_words": False, "break_on_hyphens": False}

#: The screens of `homing run --help SCREEN`, and what each is about.
SCREENS = {
    "common": "what most runs need",
    "guest": "for --on lab: a Linux guest with several NUMA nodes",
    "machines": "for --on MACHINE: simulated machines",
    "mechanisms": "when pages move: rules of the mechanisms",
    "experiments": "constants and rules, for experiments",
    "variables": "what only the environment sets",
}


@dataclass(frozen=True)
class Flag:
    """A flag as the help, the manual and completion show it."""

    names: tuple[str, ...]
    metavar: str  #: empty: it takes no value
    text: str
    group: str = "common"

    @property
    def shown(self) -> str:
        return ", ".join(self.names) + (f" {self.metavar}" if self.metavar else "")


def width() -> int:
    """Of the user's terminal, or 80."""
    stated = "COLUMNS" in os.environ
    return max(40, shutil.get_terminal_size((_WIDTH, 24)).columns) if stated or os.isatty(1) else _WIDTH


def table(rows: Iterable[tuple[str, str]], columns: int) -> list[str]:
    """Two columns; the second is wrapped, and begins on a line of its own where the first is long."""
    lines: list[str] = []
    for first, second in rows:
        found = textwrap.wrap(second, max(20, columns - _SECOND), **_WHOLE_WORDS) or [""]
        if len(first) + 4 > _SECOND:
            lines.append(f"  {first}")
        else:
            found[0] = f"  {first}".ljust(_SECOND) + found[0]
            lines.append(found.pop(0))
        lines += [" " * _SECOND + one for one in found]
    return [line.rstrip() for line in lines]


def paragraphs(text: str, columns: int) -> list[str]:
    """Texts that are separated by empty lines, wrapped."""
    lines: list[str] = []
    for part in text.split("\n\n"):
        lines += ["", *textwrap.wrap(" ".join(part.split()), columns, **_WHOLE_WORDS)]
    return lines


def top(commands: Mapping[str, Any]) -> str:
    """Of the command itself."""
    columns = width()
    what = "sends the memory pages of OpenMP programs to the NUMA nodes whose threads use them."
    lines = textwrap.wrap(f"homing {__version__}: {what}", columns)
    lines += ["", "usage: homing COMMAND ...", ""]
    lines += table(((name, entry.summary) for name, entry in commands.items()), columns)
    lines += ["", *table(TOP_FLAGS.items(), columns)]
    lines += ["", "homing COMMAND --help tells more of each; man homing has it all."]
    return "\n".join(lines) + "\n"


#: Flags of the command itself.
TOP_FLAGS = {
    "--version": "print the version",
    "--completion SHELL": "print what makes bash, zsh or fish complete homing's words",
    "-h, --help": "print this",
}


def flags_of(command: Any) -> list[Flag]:
    """The flags of a command as Click knows it."""
    groups = _groups() if command.name == "run" else {}
    found = []
    for one in command.params:
        if one.param_type_name != "option":
            continue
        metavar = "" if getattr(one, "is_flag", False) else (one.metavar or "VALUE")
        found.append(Flag(tuple(one.opts), metavar, one.help or "", groups.get(one.name, "common")))
    return found


def _groups() -> dict[str, str]:
    """The group of each flag of `homing run` that is not a common one."""
    from homing.lab_flags import LAB_FLAGS
    from homing.options import load_options
    from homing.simulate.flags import SIMULATION_FLAGS

    return {
        **dict.fromkeys(LAB_FLAGS, "guest"),
        **dict.fromkeys(SIMULATION_FLAGS, "machines"),
        **{option.name: option.group for option in load_options()},
    }


def usage(command: Any) -> str:
    """The first line of a command's help."""
    arguments = [
        one.metavar or (one.name or "").upper() for one in command.params if one.param_type_name == "argument"
    ]
    return " ".join(["usage: homing", command.name, "[options]", *arguments])


def screen(command: Any, wanted: Sequence[str] = ("common",)) -> str:
    """The help of a command; of `run` the screens that are wanted."""
    columns = width()
    lines = [usage(command)]
    flags = flags_of(command)
    is_run = command.name == "run"
    if not is_run or "common" in wanted:
        lines += paragraphs(command.help or "", columns)
    for group in wanted:
        rows = [(flag.shown, flag.text) for flag in flags if flag.group == group]
        if is_run:
            lines += ["", f"{group}: {SCREENS[group]}"]
        elif rows:
            lines += ["", "options:"]
        if group == "variables":
            lines += paragraphs(command.epilog or "", columns)
        lines += table(rows, columns)
    if is_run and len(wanted) == 1:
        others = "|".join(one for one in (*SCREENS, "all") if one not in wanted)
        lines += ["", f"more: homing run --help {others}"]
    elif not is_run and command.epilog:
        lines += paragraphs(command.epilog, columns)
    return "\n".join(lines) + "\n"
