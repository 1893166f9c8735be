"""The command `homing`: one subcommand a file, found through the table below and imported only when it is
asked for."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer

from homing import __version__
from homing.errors import MISUSE, UserError, unexpected
from homing.streams import guarded


@dataclass(frozen=True)
class Command:
    """A subcommand: the module that has a function `command` with Typer's annotations (and an `epilog` for
    its help, where there is more to say), and its line in the help."""

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
    "report": Command("homing.report.command", "Print the summary of runs again, from their records."),
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


class _Flags:
    """A flag takes no value, but Typer's help says <bool>, and `--bind true` would run the command `true`."""

    def get_params(self, context: Any) -> list[Any]:
        found: list[Any] = super().get_params(context)  # type: ignore[misc]
        for one in found:
            if getattr(one, "is_flag", False) and one.metavar is None:
                one.metavar = ""
        return found


class _Command(_Flags, typer.core.TyperCommand):
    pass


class _Group(_Flags, typer.core.TyperGroup):
    pass


def _load(name: str) -> Any:
    entry = COMMANDS[name]
    try:
        module = importlib.import_module(entry.module)
    except ModuleNotFoundError as error:
        raise UserError(f"{name}: this installation lacks the Python module {error.name}") from error
    return module


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


def build(wanted: Collection[str]) -> typer.Typer:
    """The application, with the code of the subcommands `wanted` only: importing all of them takes too
    long."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, cls=_Group)
    app.callback(invoke_without_command=True)(_top)
    for name, entry in COMMANDS.items():
        module = _load(name) if name in wanted else None
        app.command(
            name,
            cls=_Command,
            short_help=entry.summary,
            epilog=getattr(module, "epilog", None),
            context_settings=dict(entry.settings),
        )(module.command if module is not None else _placeholder)
    return app


def __getattr__(name: str) -> Any:
    """`app`: the whole application with every subcommand's code, for tools that inspect it."""
    if name != "app":
        raise AttributeError(name)
    return build(COMMANDS)


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
        command = typer.main.get_command(build({wanted} if wanted else ()))
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
            _complain(where, unexpected(error))
            return MISUSE
        _complain(where, " ".join(str(describe()).split()) + f" (see {where} --help)")
        return MISUSE
    return result if isinstance(result, int) else 0
