"""One command's files in view of their whole program."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TypeVar

from homing.errors import UserError
from homing.translate.code_text import blanked, closing
from homing.translate.directives.model import Form
from homing.translate.not_translated import included_by
from homing.translate.plan.collect import refusals
from homing.translate.positions import Position, Problem, TranslationError
from homing.translate.program.files import Others, others_of
from homing.translate.program.shared import Shared
from homing.translate.program.state import Piece, digest, piece_of, state_of, without_wrong
from homing.translate.translation import Options, Output, Refused, Result

_T = TypeVar("_T")
#: C: what declares, and uses nothing; what a header's block of declarations begins with.
_EXTERN = re.compile(r"\bextern\b[^;{}()]*;")
_LINKAGE = re.compile(r'\bextern\s*"C(?:\+\+)?"\s*\{')
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define\b.*(?:\\\n.*)*", re.MULTILINE)


@dataclass
class Viewed:
    """What the given files become. state: the program's digest, empty where it was not translated whole;
    concerned: is there anything to translate in it? digests: of what the compiler reads of each file."""

    result: Result
    pieces: dict[str, Piece]
    state: str
    concerned: bool
    digests: dict[str, str]
    shared: tuple[Shared, ...] = ()  # of the whole program


def viewed(paths: Sequence[str], options: Options) -> Viewed:
    """Translate a command's files in view of the program's other files, as far as they are found and can be
    read. TranslationError: something is wrong in the given ones."""
    given = {os.path.abspath(path): path for path in paths}
    upm = options.target == "upm"
    others = others_of(list(given), every_program=not upm)
    try:
        pieces = {path: piece_of(path, options) for path in given}
    except TranslationError as error:
        raise spelled(error, given) from error
    for path in others.paths:
        try:
            pieces[path] = piece_of(path, options)
        except UserError:
            others.lines.append(f"upm: {os.path.relpath(path)} cannot be read, and is not followed")
    try:
        result, left = without_wrong(
            pieces, options, lambda path: path not in given or not (upm or pieces[path].concerned)
        )
        unread(pieces, left, given, result)
        if upm:
            _as_told(result, left, others, set(given))
        whole = not any(pieces[path].concerned for path in left)
        state = (
            state_of(options, ((path, one.own, one.text) for path, one in pieces.items())) if whole else ""
        )
        concerned = any(one.concerned for one in pieces.values())
        return of_these(result, pieces, list(given), given, state, concerned)
    except TranslationError as error:
        raise spelled(error, given) from error


def of_these(
    result: Result,
    pieces: Mapping[str, Piece],
    paths: Sequence[str],
    names: Mapping[str, str],
    state: str,
    concerned: bool,
) -> Viewed:
    """What a whole program's translation says of some of its files, by the names that the user knows."""
    made = {output.path: output for output in result.outputs if output.changed}
    outputs = [made.get(path) or Output(path, pieces[path].loaded.file.text, False) for path in paths]
    digests = {one.path: digest(one.text) for one in outputs}
    rest = pieces.keys() - set(paths)
    shown = replace(
        result,
        outputs=[_named(one, names) for one in outputs],
        notes=[respell(one, names) for one in result.notes if one.position.file not in rest],
        report=[_in_words(line, pieces, names) for line in result.report],
        lines=sum(pieces[path].loaded.source.text.count("\n") for path in paths),
    )  # fmt: skip
    notes = tuple(str(one) for one in shown.notes)
    plan = respell(
        replace(
            result.plan,
            files=tuple(paths),
            arrays=tuple(one for one in result.plan.arrays if one.place.file not in rest),
            steps=tuple(one for one in result.plan.steps if one.place.file not in rest),
            refused=tuple(one for one in result.plan.refused if one.place.file not in rest),
        ),
        names,
    )
    shown.plan = replace(plan, notes=notes, report=tuple(shown.report))
    return Viewed(shown, {path: pieces[path] for path in paths}, state, concerned, digests, result.shared)


def unread(
    pieces: Mapping[str, Piece],
    left: Mapping[str, tuple[Problem, ...]],
    checked: Iterable[str],
    result: Result,
) -> None:
    """Files without directives that could not be read stay as they are. TranslationError: such a file names
    what it would have to know of."""
    problems: list[Problem] = []
    for path in sorted(set(checked) & left.keys()):
        source = pieces[path].loaded.source
        texts = [source.text]
        if source.form is Form.C:  # functions of headers are compiled with it
            texts += [_uses_of(text) for _, text in included_by(source, pieces[path].own.flags)]
        for one in result.shared:
            if any(one.named_in(text, source.form) for text in texts):
                problems += left[path]
                reason = f"is not translated because of its problems, and names {one}"
                problems.append(Problem(Position(path, 1, 1), "", reason))
                break
    if problems:
        raise Refused(problems, replace(result.plan, refused=refusals(problems)), left)


def _uses_of(header: str) -> str:
    """What a C header may use: its macros, and what stands in braces. Prototypes name their parameters."""
    found = _DEFINE.findall(header)
    text = _LINKAGE.sub("", _EXTERN.sub("", header))
    code = blanked(text, False, " ")
    at = code.find("{")
    while at >= 0:
        end = closing(code, at + 1)
        found.append(text[at:end])
        at = code.find("{", end)
    return "\n".join(found)


def _as_told(result: Result, left: Iterable[str], others: Others, given: set[str]) -> None:
    """--to upm: what is found is told by the command that compiles a file with calls, or the main program."""
    wrong = [one for one in result.unfollowed if one.position.file in given]
    if wrong:
        raise Refused(wrong, replace(result.plan, refused=refusals(wrong)), given)
    lines = [*others.lines]
    lines += [f"upm: {os.path.relpath(path)} cannot be read, and is not followed" for path in sorted(left)]
    hot = any(line.startswith("upm: hot: ") for line in result.report)
    changed = any(output.changed and output.path in given for output in result.outputs)
    told = changed or (others.told and (hot or others.main))
    result.report = [*lines, *result.report] if told else []


def spelled(error: TranslationError, names: Mapping[str, str]) -> TranslationError:
    """The error with files named as the user names them."""
    problems = [respell(one, names) for one in error.problems]
    if not isinstance(error, Refused):
        return TranslationError(problems)
    plan = respell(replace(error.plan, files=tuple(names)), names)
    return Refused(problems, plan, error.sources)


def respell(thing: _T, names: Mapping[str, str]) -> _T:
    """A problem or a plan in which files have the names that the user knows: those of the command, or as seen
    from the folder where it runs."""
    if isinstance(thing, Position):
        return replace(thing, file=shown(thing.file, names))
    if isinstance(thing, tuple):
        every = tuple(respell(one, names) for one in thing)
        same = all(a is b for a, b in zip(every, thing, strict=True))
        return thing if same else every  # type: ignore[return-value]
    if isinstance(thing, str):
        text: str = thing
        for path, name in names.items():
            text = text.replace(path, name) if path in text else text
        text = text.replace(os.getcwd() + os.sep, "")
        return text if text != thing else thing  # type: ignore[return-value]
    if is_dataclass(thing) and not isinstance(thing, type):
        changes = {one.name: getattr(thing, one.name) for one in fields(thing)}
        changed = {name: new for name, old in changes.items() if (new := respell(old, names)) is not old}
        return replace(thing, **changed) if changed else thing
    return thing


def shown(path: str, names: Mapping[str, str]) -> str:
    """A file by the name that the user knows."""
    if path in names:
        return names[path]
    return os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path


def _named(output: Output, names: Mapping[str, str]) -> Output:
    """The output with line markers for files as the command names them."""
    text = output.text
    for path, name in names.items() if output.changed else ():
        text = text.replace(f' "{path}"\n', f' "{name}"\n').replace(f' "{path}"\r\n', f' "{name}"\r\n')
    return Output(names.get(output.path, output.path), text, output.changed)


def _in_words(line: str, pieces: Iterable[str], names: Mapping[str, str]) -> str:
    for path in sorted(pieces, key=len, reverse=True):
        line = line.replace(path, shown(path, names))
    return line
