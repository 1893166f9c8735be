"""The command `homing`: one subcommand a file, found through the table below and imported only when it is
asked for."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer

from homing import __version__
from homing.errors import MISUSE, UserError
from homing.streams import guarded


@dataclass(frozen=True)
class Command:
    """A subcommand: the module that has a function `command` with Typer's annotations, and its line in the
    help."""

    module: str
    summary: str
    #: Typer's context settings. Where a COMMAND follows, its flags are not ours.
    settings: dict[str, Any] = field(default_factory=dict)


_TAKES_COMMAND = {"allow_interspersed_args": False}
#: Everything is the compiler's, --help and --version too.
_TAKES_COMPILER = {"allow_interspersed_args": False, "ignore_unknown_options": True}

COMMANDS = {
    "run": Command(
        "homing.run", "Run an OpenMP program; its pages are sent home while it runs.", _TAKES_COMMAND
    ),
    "report": Command("homing.report", "Print the summary of runs again, from their records."),
    "doctor": Command("homing.doctor", "What this machine allows, and the setting to change."),
    "lab": Command(
        "homing.lab_command", "Run a command in a Linux guest with several NUMA nodes.", _TAKES_COMMAND
    ),
    "cc": Command("homing.simulate.cc_command", "Compile a program for simulated machines.", _TAKES_COMPILER),
    "machine": Command("homing.simulate.machine_command", "The machines that can be simulated."),
    "translate": Command(
        "homing.translate.command", "Rewrite programs with data-distribution directives (SPMD, MPI)."
    ),
    "bench": Command("homing.bench", "Measure, and write the results for people and programs."),
}


def _placeholder() -> None:
    """Stands for a subcommand that was not asked for."""


def _load(name: str) -> Callable[..., Any]:
    entry = COMMANDS[name]
    try:
        module = importlib.import_module(entry.module)
    except ModuleNotFoundError as error:
        raise UserError(f"{name}: this installation lacks the Python module {error.name}") from error
    loaded: Callable[..., Any] = module.command
    return loaded


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"homing {__version__}")
        raise typer.Exit()


def _top(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and end."
    ),
) -> None:
    """Send the memory pages of OpenMP programs to the NUMA nodes whose threads use them."""
    if context.invoked_subcommand is None:
        raise UserError(f"which command? One of {', '.join(COMMANDS)}; see homing --help")


def build(wanted: str | None) -> typer.Typer:
    """The application, with the code of the subcommand `wanted` only: importing all of them takes too
    long."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_top)
    for name, entry in COMMANDS.items():
        callback = _load(name) if name == wanted else _placeholder
        app.command(name, short_help=entry.summary, context_settings=dict(entry.settings))(callback)
    return app


def __getattr__(name: str) -> Any:
    """`app`: the whole application with every subcommand's code, for tools that inspect it."""
    if name != "app":
        raise AttributeError(name)
    app = typer.Typer(add_completion=False)
    app.callback(invoke_without_command=True)(_top)
    for command, entry in COMMANDS.items():
        app.command(command, short_help=entry.summary, context_settings=dict(entry.settings))(_load(command))
    return app


def _complain(where: str, message: str) -> None:
    print(f"{where}: {message}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status. Every mistake of the user is one line on stderr."""
    with guarded():
        return _main(list(sys.argv[1:] if arguments is None else arguments))


def _main(words: list[str]) -> int:
    wanted = next((word for word in words if not word.startswith("-")), None)
    where = "homing"
    if wanted in COMMANDS:
        where = f"homing {wanted}"
    elif wanted is not None:
        _complain("homing", f"no command '{wanted}'; there are {', '.join(COMMANDS)}")
        return MISUSE
    try:
        # Not standalone: Typer would print a box of several lines for each mistake.
        command = typer.main.get_command(build(wanted))
        result = command.main(args=words, prog_name="homing", standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        if error.message:
            _complain(where, error.message)
        return error.status
    except (typer.Abort, KeyboardInterrupt) as error:
        _complain(where, "interrupted")
        return 128 + int(getattr(error, "signal_number", signal.SIGINT))
    except Exception as error:
        # Typer's own errors, known by their shape: their base class moved between Typer's versions.
        describe = getattr(error, "format_message", None)
        if describe is None:
            raise
        _complain(where, " ".join(str(describe()).split()) + f" (see {where} --help)")
        return MISUSE
    return result if isinstance(result, int) else 0
