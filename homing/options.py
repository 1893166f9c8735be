"""homing/options.toml as Python sees it: the flags of `homing run` and the variables that the library
reads."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homing.area_rules import are_rules
from homing.errors import UserError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "options.toml")

_SIZE = re.compile(r"([0-9]{1,18})(?:([KMG])(?:iB|B)?|B)?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Option:
    """One row of the table. `flag` is empty for what only the environment can set."""

    name: str
    env: str
    flag: str
    kind: str
    default: str
    choices: tuple[str, ...]
    doc: str
    most: float = math.inf  # of a number
    group: str = "common"  #: of the help's screens

    def check(self, value: str, where: str = "") -> None:
        """Refuse, in one line, a value that the library would not understand. `where`: instead of the
        flag."""
        where = where or self.flag
        if self.kind == "word" and value not in self.choices:
            raise UserError(f"{where} {value}: must be one of {', '.join(self.choices)}")
        if self.kind in ("number", "count") and not _is_number(value, self.most, self.kind == "count"):
            asked = "that is not negative" if self.most == math.inf else f"from 0 to {self.most:.0f}"
            whole = "whole " if self.kind == "count" else ""
            raise UserError(f"{where} {value}: must be a {whole}number {asked}")
        if self.kind == "size" and parse_size(value) is None:
            raise UserError(f"{where} {value}: must be a size such as 65536, 64KiB or 2MiB")
        if self.name == "areas" and value and not are_rules(value):
            raise UserError(f"{where} {value}: must be include=GLOB,exclude=GLOB,...")
        if self.kind == "flag" and value not in ("0", "1"):
            raise UserError(f"{where} {value}: must be 0 or 1")

    @property
    def help(self) -> str:
        """The line in the help: what it does, the choices, the default and the variable."""
        details = [", ".join(self.choices)] if self.choices else []
        if self.default and self.kind != "flag":
            details.append(f"default {self.default}")
        details.append(f"variable {self.env}" + ("=1" if self.kind == "flag" else ""))
        return f"{self.doc} ({'; '.join(details)})"


def _is_number(text: str, most: float, whole: bool) -> bool:
    try:
        number = float(text)
        return 0 <= number <= min(most, sys.float_info.max) and (number.is_integer() or not whole)
    except ValueError:
        return False


def parse_size(text: str) -> int | None:
    """Bytes; None where the library would not take the text for a size (src/base/options.hpp has the
    rule)."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    size = int(match[1]) << (10 * ("KMG".index(match[2].upper()) + 1) if match[2] else 0)
    return size if size < 2**64 else None


def load_options(path: str = TABLE) -> list[Option]:
    """The rows of the table, in its order."""
    with open(path, "rb") as file:
        rows: list[dict[str, Any]] = tomllib.load(file)["option"]
    return [
        Option(
            name=row["name"],
            env=row["env"],
            flag=row.get("flag", ""),
            kind=row["kind"],
            default=row["default"],
            choices=tuple(row.get("choices", ())),
            doc=row["doc"],
            most=float(row.get("most", math.inf)),
            group=row.get("group", "common"),
        )
        for row in rows
    ]


def only_variables(options: list[Option]) -> str:
    """What has no flag, for the end of the help: a paragraph for each row."""
    rows = [
        f"{option.env}={'|'.join(option.choices) or option.kind.upper()}: {option.doc}."
        for option in options
        if not option.flag
    ]
    return "\n\n".join(["A flag is stronger than its variable. Variables without a flag:", *rows])


def check_environment(options: list[Option], environment: Mapping[str, str]) -> None:
    """A variable with an impossible value is misuse as well: say so before the program starts."""
    for option in options:
        value = environment.get(option.env, "")
        if value:
            option.check(value, option.env)
