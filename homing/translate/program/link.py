"""The command that links knows which files a program is made of, and whether they agree.

Objects carry records of how they were translated (record.py). Where all of them were translated in view of
just this program, nothing is to do. Else the program is translated again, as its objects' sources make it
up, and each object is compared with what it should be. One that should be otherwise (another file has
changed since, or was not known when it was compiled) is compiled again for this program (again.py): the
build's own objects stay as they are, so that builds may run side by side. Objects without
a record are asked for what they need: a distributed array of a module, or a procedure that works on parts,
is nothing that they could know of.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from homing.compilers import WITH_VALUE, values_of
from homing.errors import UserError
from homing.translate.plan.collect import refusals
from homing.translate.plan.model import Plan
from homing.translate.positions import Position, Problem, TranslationError
from homing.translate.program.record import Found, Record, records_of, unrecorded
from homing.translate.program.shared import Shared
from homing.translate.program.state import Piece, piece_of, state_of, without_wrong
from homing.translate.program.view import Viewed, of_these, spelled, unread
from homing.translate.translation import Options, Own, Refused, Result


@dataclass
class Linked:
    """What the linking command's own sources become, and the objects that are to be made anew. stale: record,
    the argument that has the object, and the text that its source should have."""

    viewed: Viewed | None = None
    stale: list[tuple[Record, int, str]] = field(default_factory=list)
    any: bool = False  # is anything translated in the program?
    arrays: bool = False  # is any array distributed?
    objects: int = 0
    modules: dict[str, tuple[str, str]] = field(default_factory=dict)  # see common_modules.py


def linked(arguments: Sequence[str], sources: Sequence[str], options: Options) -> Linked:
    """Check a link. arguments: the command's; sources: those that it compiles, too. TranslationError: the
    program is refused, or some object does not belong to it."""
    names = {os.path.abspath(path): path for path in sources}
    found = {at: one for at, path in _objects(arguments) if (one := records_of(path)).records or one.without}
    records = [(record, at) for at, one in found.items() for record in one.records]
    try:
        _same_target(records, found, options)
        made = _checked(records, found, names, options)
        made.objects = len(found)
        return made
    except TranslationError as error:
        raise spelled(error, names) from error


def _checked(
    records: Sequence[tuple[Record, int]], found: dict[int, Found], names: dict[str, str], options: Options
) -> Linked:
    pieces = {path: piece_of(path, options) for path in names}
    every = {record.source: record for record, _ in records if record.source not in pieces}
    own = [(path, one.own, one.text) for path, one in pieces.items()]
    exact = state_of(options, [*own, *((one.source, _own(one), one.text) for one in every.values())])
    if not any(one.concerned for one in pieces.values()) and not any(one.concerned for one in every.values()):
        nothing = Result(plan=Plan(options.target, ()))
        return Linked(of_these(nothing, pieces, list(names), names, exact, False) if names else None)
    if not names and all(record.state == exact for record, _ in records):
        shared = [one for record in every.values() for one in record.names()]
        _without_records(found, shared, every.values())
        return Linked(None, any=True, arrays=any(one.arrays for one in every.values()))
    pieces |= _read_again(records, found, options)
    options = replace(options, own={path: one.own for path, one in pieces.items()})
    result, left = without_wrong(pieces, options, lambda path: not pieces[path].concerned)
    unread(pieces, left, pieces, result)
    _without_records(found, result.shared, every.values())
    whole = of_these(result, pieces, list(pieces), {}, exact, True)
    texts = {one.path: one.text for one in whole.result.outputs}
    stale = [
        (replace(record, state=exact, output=whole.digests[record.source]), at, texts[record.source])
        for record, at in records
        if record.output != whole.digests[record.source]
    ]
    _not_in_libraries(stale, found, result)
    viewed = of_these(result, pieces, list(names), names, exact, True) if names else None
    return Linked(viewed, stale, True, bool(result.plan.arrays), modules=result.modules)


def _not_in_libraries(
    stale: Iterable[tuple[Record, int, str]], found: dict[int, Found], result: Result
) -> None:
    """What a shared library holds cannot be replaced."""
    problems = []
    for record, at, _ in stale:
        if found[at].shared:
            reason = (
                f"{found[at].path} holds it as it was translated in view of other files: build it again, or "
                "link the objects themselves"
            )
            problems.append(Problem(Position(record.source, 1, 1), "", reason))
    if problems:
        raise Refused(problems, replace(result.plan, refused=refusals(problems)))


def _own(record: Record) -> Own:
    return Own(record.flags, record.fixed_columns)


def _objects(arguments: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The objects, archives and shared libraries among a command's arguments, by their places there."""
    folders = values_of("-L", arguments)
    endings = (".a",) if "-static" in arguments else (".so", ".a")
    before = ""
    for at, word in enumerate(arguments):
        if before in WITH_VALUE or word.startswith("-") or before == "-l":
            name = word[2:] if word.startswith("-l") else word if before == "-l" else ""
            before = "" if before in WITH_VALUE else word
            exact = name.startswith(":")  # `-l:libx.a`
            names = [name[1:]] if exact else [f"lib{name}{ending}" for ending in endings]
            for folder in folders if name else ():
                paths = (os.path.join(folder, one) for one in names)
                path = next((one for one in paths if os.path.isfile(one)), "")
                if path:
                    yield at, path
                    break
            continue
        before = word
        if os.path.isfile(word) and (word.endswith((".o", ".obj", ".a", ".so", ".lo")) or ".so." in word):
            yield at, word


def _same_target(records: Iterable[tuple[Record, int]], found: dict[int, Found], options: Options) -> None:
    problems = []
    for record, at in records:
        if record.target != options.target and record.concerned:
            reason = (
                f"{found[at].path} was translated with --to {record.target}, this command has --to "
                f"{options.target}: give both the same (HOMING_TRANSLATE), and build it again"
            )
            problems.append(Problem(Position(record.source, 1, 1), "", reason))
    if problems:
        raise Refused(problems, Plan(options.target, (), refused=refusals(problems)))


def _read_again(
    records: Iterable[tuple[Record, int]], found: dict[int, Found], options: Options
) -> dict[str, Piece]:
    """The objects' sources, which must be what they were. TranslationError: one is not, or is in the program
    twice and differs."""
    options = replace(options, own={one.source: _own(one) for one, _ in records})
    pieces: dict[str, Piece] = {}
    problems = []
    for record, at in records:
        reason = ""
        try:
            piece = pieces.get(record.source) or piece_of(record.source, options)
            pieces[record.source] = piece
            if piece.text != record.text:
                reason = f"is not what {found[at].path} was compiled from: build that again"
        except UserError as error:
            reason = f"{error.message}; {found[at].path} was compiled from it: build that again"
        if reason:
            problems.append(Problem(Position(record.source, 1, 1), "", reason))
    if problems:
        raise Refused(problems, Plan(options.target, (), refused=refusals(problems)))
    return pieces


def _without_records(found: dict[int, Found], shared: Iterable[Shared], records: Iterable[Record]) -> None:
    """Objects that other commands compiled must not need what they know nothing of."""
    symbols = {symbol: one for one in shared for symbol in one.symbols()}
    problems = []
    for one in found.values() if symbols else ():
        for label, wanted in unrecorded(one.path) if one.without else ():
            known = sorted(wanted & symbols.keys())
            if known:
                thing = symbols[known[0]]
                reason = (
                    f"{label} was compiled without the translation, and uses {thing}: compile it with "
                    "homing-translate-fc or homing-translate-cc"
                )
                problems.append(Problem(thing.place, "", reason))
    if problems:
        raise Refused(problems, Plan("", (), refused=refusals(problems)))
