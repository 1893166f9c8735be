"""The ways in which a program can be written down, none of which changes what it says: capitals, continued
lines with comments between, fixed form, branches for the preprocessor, CR LF, tabs."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

Files = dict[str, str]


def dressed(
    chance: random.Random, files: Mapping[str, str], included: Mapping[str, str], fortran: bool
) -> tuple[Files, Files]:
    """Files and what they include, written otherwise. Names of files may change (to .F90 or .f)."""
    if not fortran:
        return {name: _c(chance, text) for name, text in files.items()}, dict(included)
    style = chance.random()
    if style < 0.25:
        return {_stem(name) + ".f": _fixed(chance, text) for name, text in files.items()}, {
            name: _fixed(chance, text) for name, text in included.items()
        }
    if style < 0.45:
        made = {_stem(name) + ".F90": _preprocessed(chance, text) for name, text in files.items()}
        return made, dict(included)
    return {name: _free(chance, text) for name, text in files.items()}, dict(included)


def _stem(name: str) -> str:
    return name.rsplit(".", 1)[0]


_COMMENT = re.compile(r"'[^'\n]*'")


def _capitals(chance: random.Random, line: str) -> str:
    if _COMMENT.search(line) or chance.random() > 0.2:
        return line
    return line.upper() if chance.random() < 0.5 else line.title() if "_8" not in line else line.upper()


def _broken(chance: random.Random, line: str) -> list[str]:
    """The statement in two lines, a comment between them."""
    if "!" in line or "'" in line or line.lstrip().startswith("#") or chance.random() > 0.15:
        return [line]
    at = [match.start() for match in re.finditer(r"(?<=[,+(])\S", line)]
    if not at:
        return [line]
    cut = chance.choice(at)
    between = chance.choice([[], ["  ! x(i) = 3, is no statement"], ["", "!"]])
    ends = chance.choice([" &", "& ! 'more", "&"])
    return [line[:cut] + ends, *between, "  " + chance.choice(["", "& "]) + line[cut:]]


def _free(chance: random.Random, text: str) -> str:
    lines: list[str] = []
    capitals, broken = chance.random() < 0.4, chance.random() < 0.4
    for line in text.splitlines():
        line = _capitals(chance, line) if capitals else line
        lines += _broken(chance, line) if broken else [line]
        if chance.random() < 0.03:
            lines.append(chance.choice(["", "  ! do i = 1, n", "!", "    ! it's a 'comment"]))
    end = "\r\n" if chance.random() < 0.08 else "\n"
    return end.join(lines) + (end if chance.random() < 0.9 else "")


def _preprocessed(chance: random.Random, text: str) -> str:
    lines = ["#define MOST 10007", "#ifndef NEVER", "#define KIND8 8", "#endif"]
    for line in text.splitlines():
        plain = not re.search(r"[!&']", line)
        if plain and chance.random() < 0.1:
            lines.append(line.replace("10007_8", "int(MOST, KIND8)"))
        elif plain and chance.random() < 0.05 and re.match(r"\s+\w+(\(.*\))? = ", line):
            lines += ["#if defined(NEVER) || 0", "  this is (no program", "#else", line, "#endif"]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _fixed(chance: random.Random, text: str) -> str:
    """Fixed form: statements from column 7 to 72, comments in column 1."""
    lines: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#") or not stripped:
            lines.append(stripped)
            continue
        match = re.match(r"!\$(omp|homing)(.*)", stripped, re.IGNORECASE)
        if match:
            mark = chance.choice(["!", "c", "*", "C"])
            lines += _cut(f"{mark}${match[1]} ", f"{mark}${match[1]}&", match[2].strip(), chance)
            continue
        if stripped.startswith("!$ "):
            lines += _cut("!$    ", "!$   &", stripped[3:], chance)
            continue
        if stripped.startswith("!"):
            lines.append("c" + stripped[1:])
            continue
        label = re.match(r"(\d+) +(.*)", stripped)
        head, rest = (f" {label[1]:<5}"[:6], label[2]) if label else ("      ", stripped)
        lines += _cut(head, "     " + chance.choice("&1+$"), rest, chance)
        if chance.random() < 0.03:
            lines.append(chance.choice(["c     x(i) = 3", "*", "C it's", ""]))
    return "\n".join(lines) + "\n"


def _cut(head: str, more: str, text: str, chance: random.Random) -> list[str]:
    """The text in lines of at most 72 columns, cut where a blank or a comma is."""
    found = []
    room = 72 - max(len(head), len(more))
    while len(text) > room:
        # Where no character constant is cut in two, and no name.
        at = max(
            (m.end() for m in re.finditer(r"[ ,(]", text[:room]) if text[: m.end()].count("'") % 2 == 0),
            default=room,
        )
        found.append(head + text[:at])
        head, text = more, text[at:]
        if chance.random() < 0.1 and "$" not in more[:2]:
            found.append("c     between")
    return [*found, head + text]


def _c(chance: random.Random, text: str) -> str:
    lines = []
    style = chance.random()
    for line in text.splitlines():
        directive = line.lstrip().startswith("#")
        whole = not line.endswith("\\")
        if style < 0.3 and not directive and chance.random() < 0.1:
            line = line.replace(" = ", chance.choice([" /* x[i] = */ = ", " =\n    "]), 1)
        elif style < 0.4 and not directive and whole and chance.random() < 0.05 and '"' not in line:
            line = line.replace("  ", "\t", 1)
        elif style > 0.8 and whole and line.lstrip().startswith("#pragma omp") and chance.random() < 0.2:
            begin = chance.choice(["#pragma  omp  ", "# pragma omp ", "#pragma omp \\\n  "])
            line = line.replace("#pragma omp ", begin, 1)
        lines.append(line)
        if style < 0.5 and whole and chance.random() < 0.02:
            lines.append(chance.choice(["/* for (i = 0; i < n; i++) { */", "// }", ""]))
    end = "\r\n" if chance.random() < 0.05 else "\n"
    return end.join("\n".join(lines).split("\n")) + "\n"
