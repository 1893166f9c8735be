"""The manual, from the tables that the command itself is made of: the screens of `homing run --help`, man
pages, docs/variables.md. `python -m homing.manual FOLDER` writes what an installation has below share/."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Any

from homing import __version__, help
from homing.cli import COMMANDS
from homing.errors import UserError
from homing.options import load_options

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

_TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "variables.toml")


def load_variables() -> list[tuple[tuple[str, ...], str]]:
    """Names and meaning of the variables that are no options."""
    with open(_TABLE, "rb") as file:
        rows: list[dict[str, Any]] = tomllib.load(file)["variable"]
    return [(tuple(row["name"].split(", ")), row["doc"]) for row in rows]


def commands(*names: str) -> dict[str, Any]:
    """Commands as Click knows them."""
    import typer

    from homing.parser import build

    group: Any = typer.main.get_command(build(names))
    return {name: group.commands[name] for name in names}


def run_screen(name: str) -> str:
    """A screen of the help of `homing run`, or all of them. UserError where there is none of that name."""
    names = [*help.SCREENS, "all"]
    if name not in names:
        raise UserError(f"--help {name}: must be one of {', '.join(names)}")
    return help.screen(commands("run")["run"], list(help.SCREENS) if name == "all" else [name])


def variables_page() -> str:
    """docs/variables.md."""
    lines = [
        "# Environment variables",
        "",
        "Written by `python -m homing.manual` from homing/options.toml and homing/variables.toml.",
        "",
        "## Options",
        "",
        "A flag of `homing run` is stronger than its variable.",
        "",
        "| variable | flag | values | default | what |",
        "|---|---|---|---|---|",
    ]
    for option in load_options():
        values = ", ".join(option.choices) or option.kind
        if option.most < math.inf:
            values += f", at most {option.most:,.0f}"
        flag = f"`{option.flag}`" if option.flag else ""
        lines.append(f"| `{option.env}` | {flag} | {values} | {option.default} | {_cell(option.doc)} |")
    lines += ["", "## Others", "", "| variable | what |", "|---|---|"]
    for names, text in load_variables():
        lines.append(f"| {', '.join(f'`{name}`' for name in names)} | {_cell(text)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _roff(text: str) -> str:
    """A text as troff reads it."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.split("\n"))


def _items(rows: list[tuple[str, str]]) -> list[str]:
    return [part for first, second in rows for part in (".TP", f".B {_roff(first)}", _roff(second))]


def _begin(name: str, summary: str) -> list[str]:
    return [
        f'.TH {name.upper()} 1 "" "homing {__version__}" "homing"',
        ".SH NAME",
        f"{_roff(name)} \\- {_roff(summary.rstrip('.'))}",
    ]


def man_page() -> str:
    """homing(1)."""
    lines = _begin("homing", "send memory pages of OpenMP programs to the NUMA nodes that use them")
    lines += [".SH SYNOPSIS", ".B homing", "COMMAND ...", ".SH COMMANDS"]
    lines += _items([(f"homing-{name}(1)", entry.summary) for name, entry in COMMANDS.items()])
    lines += [".SH OPTIONS", *_items(list(help.TOP_FLAGS.items())), ".SH ENVIRONMENT"]
    lines += _items([(option.env, f"{option.doc}.") for option in load_options()])
    lines += _items([(", ".join(names), f"{text}.") for names, text in load_variables()])
    lines += [".SH EXIT STATUS"]
    lines += [_roff("That of the program that was run; 2 for misuse, with one line on standard error.")]
    return "\n".join(lines) + "\n"


def command_page(command: Any) -> str:
    """homing-NAME(1)."""
    name = command.name
    lines = _begin(f"homing-{name}", COMMANDS[name].summary)
    lines += [".SH SYNOPSIS", _roff(help.usage(command).removeprefix("usage: ")), ".SH DESCRIPTION"]
    lines += [f".PP\n{_roff(' '.join(part.split()))}" for part in (command.help or "").split("\n\n")]
    flags = help.flags_of(command)
    for group, about in help.SCREENS.items():
        if rows := [(flag.shown, f"{flag.text}.") for flag in flags if flag.group == group]:
            title = f"OPTIONS: {about}" if name == "run" else "OPTIONS"
            lines += [f".SH {_roff(title.upper())}", *_items(rows)]
    lines += [".SH SEE ALSO", ".BR homing (1)"]
    return "\n".join(lines) + "\n"


def write(share: Path) -> None:
    """Man pages and completion below share/."""
    from homing import completion

    files = {"man/man1/homing.1": man_page()}
    for name, command in commands(*COMMANDS).items():
        files[f"man/man1/homing-{name}.1"] = command_page(command)
    for shell, place in completion.PLACES.items():
        files[place] = completion.script(shell)
    for place, text in files.items():
        path = share / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write(Path(sys.argv[1]))
    else:
        print(variables_page(), end="")
