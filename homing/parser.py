"""The command line as Typer reads it. To import Typer takes longer than most of what needs none of it."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from homing import help
from homing.cli import COMMANDS
from homing.errors import UserError


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

    def format_help(self, context: Any, formatter: Any) -> None:
        formatter.write(help.screen(self))


@contextmanager
def _telling_interrupts() -> Iterator[None]:
    """Typer would end with 130, without a word."""
    try:
        yield
    except KeyboardInterrupt as error:
        number = int(getattr(error, "signal_number", signal.SIGINT))
        raise UserError("interrupted", 128 + number) from error


class _Command(_Flags, typer.core.TyperCommand):
    pass


class _Group(_Flags, typer.core.TyperGroup):
    def make_context(self, *words: Any, **more: Any) -> Any:
        with _telling_interrupts():
            return super().make_context(*words, **more)

    def invoke(self, context: Any) -> Any:
        with _telling_interrupts():
            return super().invoke(context)


def _load(name: str) -> Any:
    entry = COMMANDS[name]
    try:
        module = importlib.import_module(entry.module)
    except ModuleNotFoundError as error:
        raise UserError(f"{name}: this installation lacks the Python module {error.name}") from error
    return module


def _top(context: typer.Context) -> None:
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
            context_settings={"help_option_names": list(entry.help), **entry.settings},
        )(module.command if module is not None else _placeholder)
    return app
