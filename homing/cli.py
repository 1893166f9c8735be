"""The command `homing`: one subcommand a file, found through the table below and imported only when it is
asked for."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

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
    help: tuple[str, ...] = ("-h", "--help")


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
    "cc": Command(
        "homing.simulate.cc_command",
        "Compile a program for simulated machines.",
        _TAKES_COMPILER,
        ("--help",),
    ),
    "machine": Command("homing.simulate.machine_command", "The machines that can be simulated."),
    "translate": Command(
        "homing.translate.command", "Rewrite programs with data-distribution directives (SPMD, MPI)."
    ),
    "bench": Command("homing.bench", "Measure, and write the results for people and programs."),
}


def __getattr__(name: str) -> Any:
    """`app`: the whole application with every subcommand's code, for tools that inspect it."""
    if name != "app":
        raise AttributeError(name)
    from homing.parser import build

    return build(COMMANDS)


def _complain(where: str, message: str) -> None:
    print(f"{where}: {message}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None, held: bool = False) -> int:
    """Run the command line and return the exit status. Every mistake of the user is one line on stderr.
    held: an interrupt waits, since before Python began."""
    try:
        with guarded():
            return _main(list(sys.argv[1:] if arguments is None else arguments), held)
    except KeyboardInterrupt:
        _complain("homing", "interrupted")
        return 128 + signal.SIGINT


def command(held: bool = False) -> NoReturn:
    """Run the command line of the process and end it. held: as main() has it."""
    try:
        status = main(held=held)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done but Python's own end
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _complain("homing", "interrupted")
        status = 128 + signal.SIGINT
    sys.exit(status)


def _answer(words: list[str]) -> str:
    """What is asked of the command itself, or of a screen of the help of `homing run`; empty: nothing."""
    first, *rest = words or [""]
    if first == "--version":
        return f"homing {__version__}\n"
    if first in ("-h", "--help"):
        from homing import help

        return help.top(COMMANDS)
    if first == "--completion":
        from homing.completion import script

        return script(rest[0] if rest else "")
    if first == "run" and len(rest) > 1 and rest[0] in ("-h", "--help"):
        from homing.manual import run_screen

        return run_screen(rest[1])
    return ""


def _meant(wanted: str) -> str:
    """The command that a mistyped one is most like, as a question; nothing where it is like none."""
    import difflib

    close = difflib.get_close_matches(wanted, COMMANDS, 1)
    return f" (did you mean {close[0]}?)" if close else ""


def _main(words: list[str], held: bool) -> int:
    try:
        if answer := _answer(words):
            print(answer, end="")
            sys.stdout.flush()
            return 0
    except UserError as error:
        if error.message:
            _complain("homing run" if words[0] == "run" else "homing", error.message)
        return error.status
    wanted = next((word for word in words if not word.startswith("-")), None)
    where = "homing"
    if wanted in COMMANDS:
        where = f"homing {wanted}"
    elif wanted is not None:
        _complain("homing", f"no command '{wanted}'{_meant(wanted)}; there are {', '.join(COMMANDS)}")
        return MISUSE
    import typer

    from homing.parser import build

    try:
        # Not standalone: Typer would print a box of several lines for each mistake.
        command = typer.main.get_command(build({wanted} if wanted else ()))
        if held:  # all is imported: no module is left half done
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
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
