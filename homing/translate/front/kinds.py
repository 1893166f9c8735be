"""Which statement a Fortran statement is.

Fortran has no reserved words, so the shape decides first: a designator that an `=` or `=>` follows is an
assignment, whatever its name is. Of what is left, each statement begins with its own words.
"""

from __future__ import annotations

from dataclasses import dataclass

from homing.translate.front.tokens import Token, closing, parts

#: Statements behind which no specification comes any more.
EXECUTABLE = frozenset(
    [
        "assignment", "pointer", "call", "read", "write", "print", "io", "allocate", "deallocate", "nullify",
        "goto", "arithmetic if", "return", "exit", "cycle", "stop", "continue", "if", "if then", "do",
        "select", "where", "where then", "forall", "forall then", "associate", "block", "critical", "team",
        "image control", "assign",
    ]
)  # fmt: skip
#: Statements that open a block, with the words behind END that close it.
OPENING = {
    "if then": "if",
    "do": "do",
    "select": "select",
    "where then": "where",
    "forall then": "forall",
    "associate": "associate",
    "block": "block",
    "critical": "critical",
    "team": "team",
}
#: Statements that begin another body of the same construct.
MIDDLE = {
    "else if": "if",
    "else": "if",
    "case": "select",
    "guard": "select",
    "elsewhere": "where",
}
UNITS = frozenset(
    ["program", "module", "submodule", "subroutine", "function", "block data", "module procedure"]
)
_TYPES = frozenset(
    ["integer", "real", "complex", "logical", "character", "doubleprecision", "doublecomplex", "byte"]
)
_PREFIXES = frozenset(["pure", "impure", "elemental", "recursive", "non_recursive", "module", "simple"])
_ATTRIBUTES = frozenset(
    [
        "allocatable", "pointer", "target", "save", "external", "intrinsic", "optional", "intent", "public",
        "private", "protected", "volatile", "asynchronous", "contiguous", "value", "codimension", "bind",
        "sequence", "dimension", "parameter",
    ]
)  # fmt: skip
_IO = frozenset(["open", "close", "rewind", "flush", "backspace", "endfile", "inquire", "wait"])
_IMAGES = frozenset(["sync", "lock", "unlock", "event", "notify", "fail", "form"])
_CONSTRUCTS = frozenset(
    ["do", "if", "select", "where", "forall", "associate", "block", "critical", "change", "selectcase",
     "selecttype", "dowhile", "doconcurrent"]
)  # fmt: skip
_ENDINGS = (
    "blockdata", "associate", "interface", "submodule", "procedure", "enumeration", "subroutine", "critical",
    "function", "program", "forall", "module", "select", "where", "block", "enum", "file", "team", "type",
    "do", "if",
)  # fmt: skip


@dataclass(frozen=True)
class Form:
    """kind: what statement it is. at: the index of the token behind the words that say so. name: what the
    statement is or ends, by name. word: behind END, what ends."""

    kind: str
    at: int
    name: str | None = None
    word: str = ""
    start: int = 0  # the index of the first token behind a construct's name


def form(words: list[Token]) -> Form:
    """What statement the tokens are; kind "other" where nothing else fits."""
    if not words:
        return Form("other", 0)
    assigned = _assigned(words)
    if assigned is not None:
        return assigned
    named = (
        len(words) > 2 and words[0].kind == "name" and words[1].text == ":" and words[2].text in _CONSTRUCTS
    )
    start = 2 if named else 0
    found = _by_word(words, start)
    return Form(found.kind, found.at, words[0].text if named else found.name, found.word, start)


def _assigned(words: list[Token]) -> Form | None:
    """An assignment: NAME [(...)] [% NAME [(...)]] ... = or =>."""
    at = 0
    while at < len(words) and words[at].kind == "name":
        at += 1
        while at < len(words) and words[at].text in ("(", "["):
            at = closing(words, at) + 1
        if at >= len(words):
            return None
        if words[at].text == "=":
            # Fixed form knows no blanks: DO10I=1,5.
            squeezed = (
                at == 1 and words[0].text.startswith("do") and len(parts(words, 2, len(words), ",")) > 1
            )
            return None if squeezed else Form("assignment", at)
        if words[at].text == "=>":
            return Form("pointer", at)
        if words[at].text != "%":
            return None
        at += 1
    return None


def _text(words: list[Token], at: int) -> str:
    return words[at].text if at < len(words) else ""


def _by_word(words: list[Token], at: int) -> Form:
    word, following = _text(words, at), _text(words, at + 1)
    if words[at].kind != "name":
        return Form("other", at)
    if word in ("if", "elseif") or (word == "else" and following == "if"):
        return _if(words, at, word)
    if word.startswith("else"):
        if word == "elsewhere" or (word == "else" and following == "where"):
            return Form("elsewhere", at + (1 if word == "elsewhere" else 2))
        return Form("else", at + 1)
    if word.startswith("end") and (found := _end(words, at, word)) is not None:
        return found
    if word in ("do", "dowhile", "doconcurrent"):
        return Form("do", at + 1)
    if word in ("where", "forall") and following == "(":
        behind = closing(words, at + 1) + 1
        return Form(f"{word} then" if behind >= len(words) else word, at + 1)
    if word in ("selectcase", "selecttype", "selectrank"):
        return Form("select", at + 1, word=word[6:])
    if word == "select" and following in ("case", "type", "rank"):
        return Form("select", at + 2, word=following)
    if word == "case":
        return Form("case", at + 1)
    if word == "rank":
        return Form("guard", at + 1)
    if word in ("class", "type") and (
        following == "default" or (following == "is" and _text(words, at + 2) == "(")
    ):
        return Form("guard", at + 2)
    if word == "associate" and following == "(":
        return Form("associate", at + 1)
    if word in ("block", "critical") and following != "data":
        return Form(word, at + 1)
    if word == "change" and following == "team":
        return Form("team", at + 2)
    return _simple(words, at, word, following)


def _if(words: list[Token], at: int, word: str) -> Form:
    """IF and ELSE IF; `at` of the result is the opening bracket."""
    opening = at + (2 if word == "else" else 1)
    behind = closing(words, opening) + 1
    if word != "if":
        return Form("else if", opening)
    if _text(words, behind) == "then" and behind + 1 == len(words):
        return Form("if then", opening)
    if behind < len(words) and words[behind].kind == "number":
        return Form("arithmetic if", opening)
    return Form("if", opening) if behind < len(words) else Form("other", at)


def _end(words: list[Token], at: int, word: str) -> Form | None:
    """END and what ends, in one word or in two."""
    if word == "end":
        what, after = _text(words, at + 1), at + 2
        if what in ("block", "module", "enumeration") and _text(words, at + 2) in (
            "data",
            "procedure",
            "type",
        ):
            what, after = what + _text(words, at + 2), at + 3
    else:
        what, after = word[3:], at + 1
        if what not in _ENDINGS:
            return None
    if what == "file":
        return Form("io", after)
    name = _text(words, after) or None
    return Form("end", after, name, what)


def _simple(words: list[Token], at: int, word: str, following: str) -> Form:
    if word == "call":
        return Form("call", at + 1)
    if word in ("read", "write", "print", "allocate", "deallocate", "nullify", "return", "exit", "cycle"):
        return Form(word, at + 1)
    if word == "continue" and len(words) == at + 1:
        return Form("continue", at + 1)
    if word in ("stop", "pause") or (word == "error" and following == "stop") or word == "errorstop":
        return Form("stop", at + (2 if word == "error" else 1))
    if word == "goto" or (word == "go" and following == "to"):
        return Form("goto", at + (1 if word == "goto" else 2))
    if word == "assign":
        return Form("assign", at + 1)
    if word in _IO and following != "::":
        return Form("io", at + 1)
    if word in _IMAGES and following in ("all", "images", "memory", "team", "post", "wait", "image", "("):
        return Form("image control", at + 1)
    return _specification(words, at, word, following)


def _specification(words: list[Token], at: int, word: str, following: str) -> Form:
    unit = _unit(words, at)
    if unit is not None:
        return unit
    if word == "contains" and len(words) == at + 1:
        return Form("contains", at + 1)
    if word in ("use", "import", "include", "implicit", "common", "equivalence", "data", "namelist", "format",
                "entry", "enumerator", "generic", "final"):  # fmt: skip
        return Form(word, at + 1)
    if word == "interface" or (word == "abstract" and following == "interface"):
        return Form("interface", at + 1)
    if word == "enum":
        return Form("enum", at + 1)
    if word == "enumeration" and following == "type":
        return Form("enum", at + 2, word="type")
    if word == "type" and following != "(":
        return Form("type definition", at + 1)
    doubled = word == "double" and following in ("precision", "complex")
    if word in _TYPES or doubled or word in ("type", "class", "procedure", "typeof", "classof"):
        return Form("declaration", at)
    if word in _ATTRIBUTES:
        return Form("attribute", at + 1, word=word)
    return Form("other", at)


def _unit(words: list[Token], at: int) -> Form | None:
    """The head of a program unit, behind PURE, RECURSIVE, a type and so on."""
    word, following = words[at].text, _text(words, at + 1)
    if word in ("program", "submodule") or (word == "module" and following not in ("procedure", *_PREFIXES)):
        name = at + 1
        if word == "submodule":
            name = closing(words, at + 1) + 1
        if word != "module" or following not in ("subroutine", "function", *_TYPES) or len(words) == at + 2:
            return Form(word, name + 1, _text(words, name)) if _text(words, name) else None
    if word == "module" and following == "procedure":
        return Form("module procedure", at + 3, _text(words, at + 2))
    if word == "blockdata" or (word == "block" and following == "data"):
        name = at + (1 if word == "blockdata" else 2)
        return Form("block data", name + 1, _text(words, name) or "block data")
    start = at
    while at < len(words):
        word = words[at].text
        if word in ("subroutine", "function") and at + 1 < len(words) and words[at + 1].kind == "name":
            if word == "subroutine" or _text(words, at + 2) == "(":
                return Form(word, at + 2, words[at + 1].text)
            return None
        if word in _PREFIXES or word in ("precision", "complex"):
            at += 1
        elif word in _TYPES or word in ("double", "type", "class"):
            at += 1
            if _text(words, at) == "*":
                at += 1
                at = closing(words, at) + 1 if _text(words, at) == "(" else at + 1
            elif _text(words, at) == "(":
                at = closing(words, at) + 1
        elif word in ("attributes", "bind") and at > start and _text(words, at + 1) == "(":
            at = closing(words, at + 1) + 1
        else:
            return None
    return None
