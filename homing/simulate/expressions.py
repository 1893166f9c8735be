"""The conditions of --fail-if: comparisons over the figures of the JSON file.

    remote_fraction > 0.1
    area.u.remote_fraction > 0.2 and total_misses > 1000
    any_area.remote_fraction > 0.5 or not (home_share.0 < 0.4)

A figure is one of `counts.run`, `area.NAME.FIGURE` (an array by its name, its variable, a part of either, or
file:line; in double quotes where it has spaces or brackets; all arrays of that name where there are several),
`any_area.FIGURE` (arrays with at least 1 % of the misses), `home_share.NODE`, or `moved_pages`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from homing.area_rules import no_array, wanted
from homing.errors import UserError
from homing.integers import decimal
from homing.report.statements import last_component

#: The exit status where the condition is true.
FAILED = 96

#: Arrays with a smaller share of all misses are not looked at by any_area.
LEAST_SHARE = 0.01

FIGURES = (
    "accesses",
    "total_misses",
    "remote_misses",
    "remote_fraction",
    "invalidation_misses",
    "upgrades",
    "shared_hits",
    "oracle_remote_fraction",
    "oracle_remote_misses",
)
AREA_FIGURES = ("total_misses", "remote_misses", "remote_fraction", "share")

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)\s*(?P<percent>%)?|(?P<compare>[<>]=?|==|!=)"
    r"|(?P<bracket>[()])|(?P<quoted>\"[^\"]*\")|(?P<word>[A-Za-z_](?:[\w.*?:/@+%\-\[\]]|\"[^\"]*\")*))"
)
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


@dataclass
class Verdict:
    """true: the condition holds. reasons: the comparisons that made it so, with the arrays' names."""

    true: bool
    reasons: list[str] = field(default_factory=list)
    #: Names that several arrays have.
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Expression:
    """A condition, parsed: `tree` is a nested tuple."""

    text: str
    tree: Any

    @staticmethod
    def parse(text: str) -> Expression:
        """UserError where it is no condition."""
        parser = _Parser(text)
        try:
            return Expression(text, parser.whole())
        except RecursionError as error:
            raise parser.fail("is nested too deeply") from error

    def judge(self, counts: dict[str, Any]) -> Verdict:
        """Is it true for these counts (docs/json.md)? UserError where a figure is not there."""
        return _judge(self.tree, counts, self.text)

    def status(self, counts: Callable[[Expression], dict[str, Any]]) -> int:
        """Says what it comes to, and gives the exit status: 0, FAILED, or that of the UserError of a test
        that cannot be made: it has not passed."""
        try:
            verdict = self.judge(counts(self))
        except UserError as error:
            print(f"homing run: {error.message}", file=sys.stderr)
            return error.status
        for note in dict.fromkeys(verdict.notes):
            print(f"homing run: --fail-if {note}", file=sys.stderr)
        if not verdict.true:
            return 0
        print(f"homing run: --fail-if {self.text}: true", file=sys.stderr)
        for line in verdict.reasons:
            print(f"  {line}", file=sys.stderr)
        return FAILED


def exit_status(
    conditions: Sequence[Expression], of_program: int, counts: Callable[[Expression], dict[str, Any]]
) -> int:
    """That of a program that failed, which has the last word; else FAILED where any of the conditions holds
    (each that does is told), or that of one that cannot be judged, or 0."""
    if of_program != 0:
        print("homing run: --fail-if was not looked at: the program failed", file=sys.stderr)
        return of_program
    return max(condition.status(counts) for condition in conditions)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            found = _TOKEN.match(text, at)
            if not found:
                raise self.fail(f"cannot be read at {text[at:].strip()!r}")
            kind = next(name for name in ("number", "compare", "bracket", "quoted", "word") if found[name])
            value = found[kind]
            if kind == "number" and found["percent"]:
                value = str(float(value) / 100)
            self.tokens.append((kind, value))
            at = found.end()
        self.at = 0

    def fail(self, reason: str) -> UserError:
        return UserError(f"--fail-if {self.text}: {reason}")

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.at += 1
        return token

    def whole(self) -> Any:
        tree = self.any_of()
        if self.peek()[0] != "end":
            raise self.fail(f"what is {self.peek()[1]!r}?")
        return tree

    def any_of(self) -> Any:
        parts = [self.all_of()]
        while self.peek() == ("word", "or"):
            self.take()
            parts.append(self.all_of())
        return parts[0] if len(parts) == 1 else ("or", parts)

    def all_of(self) -> Any:
        parts = [self.one()]
        while self.peek() == ("word", "and"):
            self.take()
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else ("and", parts)

    def one(self) -> Any:
        if self.peek() == ("word", "not"):
            self.take()
            return ("not", self.one())
        if self.peek() == ("bracket", "("):
            self.take()
            inside = self.any_of()
            if self.take() != ("bracket", ")"):
                raise self.fail("a bracket is not closed")
            return inside
        kind, name = self.take()
        if kind != "word":
            raise self.fail(f"expects the name of a figure, not {name!r}" if name else "ends too early")
        self.check_name(name)
        kind, operator = self.take()
        if kind != "compare":
            raise self.fail(f"expects one of {' '.join(_COMPARE)} after {name}")
        kind, number = self.take()
        if kind != "number":
            raise self.fail(f"expects a number after {operator}")
        return ("compare", name, operator, float(number))

    def check_name(self, name: str) -> None:
        prefix, _, figure = name.rpartition(".")
        if name in FIGURES or name == "moved_pages":
            return
        if prefix == "home_share" and decimal(figure) is not None:
            return
        if prefix == "any_area" or prefix.startswith("area."):
            if figure in AREA_FIGURES:
                return
            raise self.fail(f"{figure or name}: must be one of {', '.join(AREA_FIGURES)}")
        raise self.fail(
            f"{name}: there are {', '.join(FIGURES)}, moved_pages, home_share.NODE, "
            "area.NAME.FIGURE and any_area.FIGURE"
        )


def _judge(tree: Any, counts: dict[str, Any], text: str) -> Verdict:
    if tree[0] == "compare":
        return _compare(tree[1], tree[2], tree[3], counts, text)
    if tree[0] == "not":
        inner = _judge(tree[1], counts, text)
        reasons = [] if inner.true else ["not: the condition inside is false"]
        return Verdict(not inner.true, reasons, inner.notes)
    verdicts = [_judge(part, counts, text) for part in tree[1]]
    true = all(one.true for one in verdicts) if tree[0] == "and" else any(one.true for one in verdicts)
    reasons = [reason for one in verdicts if one.true for reason in one.reasons] if true else []
    return Verdict(true, reasons, [note for one in verdicts for note in one.notes])


def _compare(name: str, operator: str, limit: float, counts: dict[str, Any], text: str) -> Verdict:
    compare = _COMPARE[operator]
    values = _values(name, counts, text)
    reasons = [
        f"{label} = {value:.6g} {operator} {limit:g}{said}"
        for label, value, said in values
        if compare(value, limit)
    ]
    if reasons and not name.startswith(("area.", "any_area.")):
        reasons += _offenders(counts)
    several = name.startswith("area.") and len(values) > 1
    notes = [f"{name.rpartition('.')[0]}: {len(values)} arrays have this name"] if several else []
    return Verdict(bool(reasons), reasons, notes)


def _values(name: str, counts: dict[str, Any], text: str) -> list[tuple[str, float, str]]:
    """What a name stands for: labels, values, and how these are known where they are no counts."""
    prefix, _, figure = name.rpartition(".")
    if name in FIGURES:
        return [(name, *_known(counts["run"], name, name, FIGURES, text))]
    if name == "moved_pages":
        return [(name, float(counts["moved_pages"]), "")]
    if prefix == "home_share":
        shares = counts["run"].get("home_shares")
        if shares is None:
            raise UserError(f"--fail-if {text}: {name}: only with --on MACHINE")
        if int(figure) >= len(shares):
            raise UserError(f"--fail-if {text}: {name}: the machine has {len(shares)} nodes, from 0")
        return [(name, float(shares[int(figure)]), "")]
    areas = counts["areas"]
    if prefix == "any_area":
        chosen = _looked_at(areas, text)
    else:
        chosen = _called(prefix.removeprefix("area.").replace('"', ""), areas, text)
    return [(f"{_label(one)}: {figure}", *_known(one, figure, name, AREA_FIGURES, text)) for one in chosen]


def _looked_at(areas: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """The arrays that any_area is about. UserError where there is none: nothing was judged."""
    large = [one for one in areas if one["share"] >= LEAST_SHARE]
    chosen = [one for one in large if "too_few" not in one]
    if chosen:
        return chosen
    if not areas:
        why = "no array was watched"
    elif not large:
        why = f"no array has {100 * LEAST_SHARE:g} % of the misses, or touches"
    else:
        why = f"{_label(large[0])}: {large[0]['too_few']}"
    raise UserError(f"--fail-if {text}: any_area: {why}")


def _known(
    figures: dict[str, Any], figure: str, name: str, all_figures: Sequence[str], text: str
) -> tuple[float, str]:
    """The figure, and how it is known where it was not counted."""
    if figures.get(figure) is None:
        known = [one for one in all_figures if figures.get(one) is not None]
        raise UserError(f"--fail-if {text}: {name} is not known of this run; known: {', '.join(known)}")
    said = figures.get("estimate", "") if figure == "remote_fraction" else ""
    return float(figures[figure]), f", of touches, {said}" if said else ""


def _called(asked: str, areas: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """The arrays of this name. UserError where there is none, or one of them is not known well enough."""
    chosen = [one for one in areas if _is_called(one, asked)]
    if not chosen:
        known = {one["variable"] or one["name"] for one in areas}
        raise UserError(f"--fail-if {text}: {no_array(asked, known)}")
    for one in chosen:
        if "too_few" in one:
            raise UserError(f"--fail-if {text}: {_label(one)}: {one['too_few']}")
    return chosen


def _is_called(area: dict[str, Any], text: str) -> bool:
    """Is it what --areas selects by this name (docs/names.md)? Case does not count."""
    symbol, title, variable = area["name"], area["title"], area["variable"] or ""
    # pressure: grid (two.c:4) from main (two.c:7)
    calls = re.split(r": | from ", title)
    head = calls[0].partition(" (")[0]
    lines = {line.lower() for line in re.findall(r"\(([^()\s]+:\d+)\)", title)}
    names = {symbol, symbol.strip("/").split("::")[-1], title, variable, head, *area.get("members", [])}
    names |= {part for name in (variable, head) for part in re.split(r"%|->|\.", name)}
    names |= {last_component(variable), *lines}
    if _is_one_of(names, text):
        return True
    asked = wanted(text)
    if not asked.lines or not {line.lower() for line in asked.lines} <= lines:
        return False
    return _is_one_of({*names, *(call.partition(" (")[0] for call in calls)}, asked.variable)


def _is_one_of(names: set[str], glob: str) -> bool:
    # Brackets are no sets of letters here.
    shape = re.sub(r"[\[\]]", lambda bracket: f"[{bracket[0]}]", glob.lower())
    return any(fnmatchcase(name.lower(), shape) for name in names if name)


def _label(area: dict[str, Any]) -> str:
    variable, title = area["variable"], area["title"]
    return (
        title if not variable or re.search(rf"\b{re.escape(variable)}\b", title) else f"{variable} ({title})"
    )


def _offenders(counts: dict[str, Any]) -> list[str]:
    """The arrays behind the run's remote misses, or touches, where these are estimated."""
    areas = counts["areas"]
    if any("estimate" in one for one in areas):
        what = "touches"
        remote = [one["share"] * one["remote_fraction"] for one in areas]
        total = sum(remote)
    else:
        what = "misses"
        remote = [one["remote_misses"] for one in areas]
        total = counts["run"].get("remote_misses") or sum(remote)
    most = sorted(zip(remote, areas, strict=True), key=lambda one: -one[0])[:5]
    return [
        f"{_label(one)}: {100 * one['remote_fraction']:.1f} % of its {what} remote"
        f"{', ' + one['estimate'] if 'estimate' in one else ''}, "
        f"{100 * part / total:.0f} % of all remote {what}"
        for part, one in most
        if total and part >= 0.01 * total and "too_few" not in one
    ]
