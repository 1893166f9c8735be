"""The scanner of directives: every spelling says the same, every place is exact, nothing is lost."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from homing.translate.directives.model import (
    DataAffinity,
    Dialect,
    Directive,
    Distribute,
    Form,
    Nest,
    NoSequence,
    Numa,
    OnHome,
    Redistribute,
    Shadow,
    Source,
    ThreadAffinity,
)
from homing.translate.directives.scanner import Scanned, form_of, scan
from homing.translate.positions import Name, Position, Text

FORMS = [Form.FREE, Form.FIXED, Form.C]


def one(text: str, form: Form) -> Directive:
    (found,) = clean(text, form).directives
    return found


def clean(text: str, form: Form) -> Scanned:
    scanned = scan(text, "x", form)
    assert not scanned.problems
    assert not scanned.notes
    return scanned


def reason(text: str, form: Form = Form.FREE) -> str:
    scanned = scan(text, "x", form)
    assert not scanned.directives
    (problem,) = scanned.problems
    return str(problem)


def meaning(value: Any) -> Any:
    """A directive without places and the user's layout."""
    if isinstance(value, Name):
        return value.key
    if isinstance(value, Text):
        return "".join(value.text.split())
    if isinstance(value, Position | Source):
        return None
    if dataclasses.is_dataclass(value):
        parts = {each.name: meaning(getattr(value, each.name)) for each in dataclasses.fields(value)}
        return (type(value).__name__, parts)
    if isinstance(value, tuple):
        return [meaning(each) for each in value]
    return value


# --- spellings ----------------------------------------------------------------------------------------------

SAME = [
    "!$homing distribute_reshape a(*, block)",
    "  !$HOMING DISTRIBUTE_RESHAPE A ( * , BLOCK )   ! why",
    "!$homing distribute_reshape (*, block) :: a",
    "!$homing distribute_reshape &\n!$homing& a(*, &\n  !$homing block)",
    "!$homing distribute_re&\n!$homing&shape a(*,block)",
    "!$SGI DISTRIBUTE-RESHAPE A(*,BLOCK)",
    "!$SGI DISTRIBUTE_RESHAPE A(*,&\n!$SGI BLOCK)",
    "!$distribute_reshape a(*, block)",
]
SAME_FIXED = [
    "!$homing distribute_reshape a(*, block)",
    "C$HOMING DISTRIBUTE_RESHAPE A(*,BLOCK)",
    "*$homing distribute_reshape a(*,\n*$homing+ block)",
    "c$homing distribute_reshape a(*, &\nc$homing block)",
    "c$distribute_reshape a(*, block)",
    "c$distribute_reshape a(*,\nc$& block)",
    "C$SGI DISTRIBUTE_RESHAPE A(*,\nC$SGI& BLOCK)",
    "C$SGI DISTRIBUTE_RESHAPE A(*,\nC$SGI+BLOCK)",
]


@pytest.mark.parametrize(
    ("text", "form"), [*((text, Form.FREE) for text in SAME), *((text, Form.FIXED) for text in SAME_FIXED)]
)
def test_spellings(text: str, form: Form) -> None:
    wanted = one(SAME[0], Form.FREE)
    assert meaning(one(text, form)) == meaning(wanted)
    assert isinstance(wanted, Distribute)
    assert wanted.reshape


@pytest.mark.parametrize(
    "text",
    [
        "#pragma homing distribute a[block][*]",
        "  #  pragma   homing DISTRIBUTE a [BLOCK] [*] // why",
        "#pragma homing distribute \\\n a[block] /* why\n not */ [*]",
        "%: pragma homing distribute [block][*] :: a",
        "/* first */ #pragma distribute a[block][*]\r\n",
    ],
)
def test_spellings_in_c(text: str) -> None:
    assert meaning(one(text, Form.C)) == meaning(one("#pragma homing distribute a[block][*]", Form.C))


def test_compaq() -> None:
    text = """
!DEC$ MEMORIES m(4)
!DEC$ TEMPLATE t(0:n+1)
!DEC$ DISTRIBUTE (BLOCK, *) ONTO m :: a, b
!DEC$ ALIGN c(i) WITH t(i+1)
!DEC$ NOSEQUENCE a
cDEC$ numa
!DEC$ OMP NUMA
!DEC$ ON HOME (a(i, j))
!DEC$ ATTRIBUTES ALIGN : 64 :: a
!DEC$ IVDEP
"""
    found = clean(text, Form.FIXED).directives
    names = [type(each).__name__ for each in found]
    assert names == [
        "Arrangement",
        "Template",
        "Distribute",
        "Distribute",
        "Align",
        "NoSequence",
        "Numa",
        "Numa",
        "OnHome",
    ]
    assert all(each.source.dialect is Dialect.COMPAQ for each in found)
    assert isinstance(found[2], Distribute)
    assert not found[2].reshape
    assert found[2].onto is not None
    assert found[2].onto.arrangement is not None
    assert isinstance(found[5], NoSequence)
    assert isinstance(found[7], Numa)
    assert isinstance(found[8], OnHome)
    assert [each.text for each in found[8].home.subscripts] == ["i", "j"]


def test_loop_directives_together() -> None:
    nest, affinity = clean("!$homing nest(i, J), affinity(i, j) = data(a(i, 2*j+1))", Form.FREE).directives
    assert isinstance(nest, Nest)
    assert isinstance(affinity, DataAffinity)
    assert [each.key for each in nest.variables] == ["i", "j"]
    assert affinity.home.subscripts[1].text == "2*j+1"
    thread = one("#pragma homing affinity(i) = thread(i % 4)", Form.C)
    assert isinstance(thread, ThreadAffinity)
    assert thread.thread.text == "i % 4"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("!$omp parallel do private(i), affinity(j) = data(a(1, j)), schedule(static)\n", Form.FREE),
        ("!$omp parallel do private(i) &\n!$omp& , affinity(j) = data(a(1, j)) ! why\n", Form.FREE),
        ("c$omp parallel do private(i)\nc$omp+ affinity(j) = data(a(1, j))\n", Form.FIXED),
        ("#pragma omp for private(i), affinity(j) = data(a[j][1]) nowait\n", Form.C),
        ("#pragma omp for private(i) \\\n  affinity(j) = data(a[j][1]) nowait\n", Form.C),
    ],
)
def test_clauses_on_openmp_lines(text: str, form: Form) -> None:
    """The clause and the comma before it can be cut out of the user's line."""
    found = one(text, form)
    assert isinstance(found, DataAffinity)
    source = found.source
    assert not source.whole_lines
    line = text.split("\n")[source.first_line - 1]
    assert source.first_line == source.end_line
    cut = line[: source.position.column - 1] + line[source.end_column - 1 :]
    assert source.text == line[source.position.column - 1 : source.end_column - 1]
    assert "affinity" not in cut
    assert not re.search(r",\s*,|,\s*$", cut)


def test_sgi_clauses_behind_a_plus() -> None:
    text = "!$omp parallel do private(i,j)\n!$SGI+NEST(i, j)\n!$SGI+AFFINITY(i, j) = DATA(a(i, j))\n"
    nest, affinity = clean(text, Form.FREE).directives
    assert isinstance(nest, Nest)
    assert isinstance(affinity, DataAffinity)
    assert nest.source.whole_lines
    assert (nest.source.first_line, nest.source.last_line) == (2, 3)


def test_openmp_affinity_is_not_ours() -> None:
    """OpenMP 5's clause of tasks has a list and no equals sign."""
    clean("#pragma omp task affinity(a[i]) depend(in: b)\n", Form.C)
    clean("!$omp task affinity(a(i))\n", Form.FREE)


# --- places -------------------------------------------------------------------------------------------------


def test_places() -> None:
    text = "x = 1\n  !$homing distribute a(block), &\n!$homing   bcd(*, &  ! why\n  !$homing& cyclic(k+1))\n"
    first, second = clean(text, Form.FREE).directives
    assert isinstance(second, Distribute)
    assert first.source == second.source
    source = second.source
    assert (source.position, source.end_line) == (Position("x", 2, 3), 4)
    assert source.text == text[text.index("!$homing") :].rstrip("\n")
    assert second.name.position == Position("x", 3, 12)
    assert second.formats[1].position == Position("x", 4, 13)
    assert second.formats[1].arguments[0] == Text("k+1", Position("x", 4, 20))


def test_places_in_c() -> None:
    text = '/* x "\n*/ #pragma homing \\\n  on /* , */ home(a[i\\\n+1][ 2 ]) // z\nint i;\n'
    found = one(text, Form.C)
    assert isinstance(found, OnHome)
    assert found.source.position == Position("x", 2, 4)
    assert (found.source.last_line, found.home.name.position) == (4, Position("x", 3, 19))
    assert found.home.subscripts[0] == Text("i+1", Position("x", 3, 21))
    assert found.home.subscripts[1].position == Position("x", 4, 6)


# --- what is wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("!$homing", "x:1:1: a directive is missing"),
        ("!$homing distribut a(block)", "x:1:10: is no directive of homing: distribut"),
        ("!$homing distribute a", "x:1:22: must be a distribution for each dimension"),
        ("!$homing distribute a(blok)", "x:1:23: must be BLOCK, CYCLIC"),
        ("!$homing distribute a(block", "x:1:28: `)` is missing"),
        ("!$homing distribute a(block) b", "x:1:30: the directive should have ended"),
        ("!$homing distribute a(cyclic(2,3))", "CYCLIC takes one number"),
        ("!$homing distribute a(gen_block)", "GEN_BLOCK needs its sizes"),
        ("!$homing distribute a(block(4))", "BLOCK takes no size"),
        ("!$homing distribute a%b(block)", "a component of a structure"),
        ("!$homing distribute m::a(block)", "x:1:21: write 'a' alone; DISTRIBUTE stands in the module that"),
        ("!$homing on home(m::a(i))", "x:1:18: write 'a' alone"),
        ("!$homing align a(i) with m::b(i)", "x:1:26: write 'b' alone"),
        ("!$homing distribute a(block) extent(n, m)", "has 2 extents for 1 dimensions"),
        ("!$homing distribute a(block) onto p onto q", "is said twice"),
        ("!$homing redistribute a(block) extent(n)", "EXTENT belongs to"),
        ("!$homing on a(i)", "must be ON HOME"),
        ("!$homing on home(a)", "must be the subscripts"),
        ("!$homing affinity(i) = a(i)", "must be DATA(array element) or THREAD"),
        ("!$homing affinity(i, i) = data(a(i))", "names a loop variable twice"),
        ("!$homing affinity(i)", "must be `= DATA"),
        ("!$homing nest(i) nest(j)", "is said twice"),
        ("!$homing align a(i) to b(i)", "must be WITH"),
        ("!$homing align a(i+1) with b(i)", "must be `)`"),
        ("!$homing shadow a", "`(` is missing"),
        ("!$homing shadow a(1:2:3)", "must be `)`"),
        ("!$homing template t", "`(` is missing"),
        ("!$homing processors 4", "must be a name"),
        ("!$homing on home(a(i,))", "must be an expression"),
        ("!$homing on home(a((i))", "is missing"),
        ("!$homing on home(a(i])", "must be `)`"),
        ("!$homing on home(a((i])", "does not close"),
        ("!$homing distribute a(block) é", "has no meaning"),
        ("!$homing distribute a(block) &\n! no", "ends with & but"),
        ("!$homing distribute a(block) &", "ends with & but"),
        ("!$homing& distribute a(block)", "continues nothing"),
        ("x = 'a' !$homing distribute a(block)", "x:1:9: a directive needs a line of its own"),
        ("!$sgi+distribute a(block)", "only ON HOME, AFFINITY, NEST"),
        ("!$sgi foo a", "is no directive"),
    ],
)
def test_wrong(text: str, wanted: str) -> None:
    assert wanted in reason(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("#pragma homing distribute a(block)", "C writes subscripts in brackets"),
        ("#pragma homing distribute", "must be an array or template"),
        ("#pragma homing on home(s->a[i])", "a component of a structure"),
        (
            "#pragma homing distribute n::m::a[block]",
            "write 'a' alone; DISTRIBUTE stands in the namespace that",
        ),
        ("#pragma homing distribute ::a[block]", "x:1:27: write 'a' alone"),
        ('_Pragma("homing distribute a[block]")', "as #pragma only"),
        ("#define P(x) _Pragma(#x)\n#define H(x) P(homing x)\nH(distribute a[block])", "x:2:14: "),
        ("#define P(x) _Pragma(#x)\nP(distribute a[block])", "x:2:1: "),
        ('#include "pragmas.h"\nPRAGMA(homing distribute a[block])', "nor from a macro"),
        ('#include "macros.h"\nDO(homing distribute a[block])', "nor from a macro"),
        ("#pragma omp for nest(i) \\\n nest(j,", "must be a loop variable"),
        ("#pragma omp for affinity(i) = \\\n data(a[i])", "must stand on one line"),
    ],
)
def test_wrong_in_c(text: str, wanted: str) -> None:
    scanned = scan(text, "x", Form.C)
    assert wanted in "\n".join(map(str, scanned.problems))


def test_words_of_directives_in_other_brackets() -> None:
    text = """#define P(x) _Pragma(#x)
void f(void) { puts("P(homing distribute)"); distribute(dynamic); use(distribute, homing); }  // P(homing on)
"""
    assert not scan(text + "P(omp parallel for schedule(dynamic))", "x", Form.C).problems


def test_behind_column_72() -> None:
    line = "!$homing distribute " + ", ".join(f"array_{n}(block)" for n in range(5))
    assert "x:1:73: stands behind column 72" in reason(line, Form.FIXED)
    assert len(scan(line, "x", Form.FIXED, line_length=132).directives) == 5
    assert len(scan(line, "x", Form.FIXED, line_length=0).directives) == 5
    clean(f"{'!$homing distribute a(block)':<72}!  00000010", Form.FIXED)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("c$doacross local(i), affinity(i) = data(a(i))", Form.FIXED),
        ("c$page_place (a, 8, 0)", Form.FIXED),
        ("!DEC$ PLACE_NEXT_TOUCH(a)", Form.FREE),
        ("!DEC$ DISTRIBUT a(block)", Form.FREE),
        ("!HPF$ DISTRIBUTE a(BLOCK)", Form.FREE),
        ("! $homing distribute a(block)", Form.FREE),
        ("!homing$ distribute a(block)", Form.FREE),
        ("!$ homing distribute a(block)", Form.FREE),
        ("!$homing_distribute a(block)", Form.FREE),
        ("#pragma page_place (a, 8, 0)", Form.C),
        ("#pragma Homing distribute a[block]", Form.C),
        ("#pragma homing_distribute a[block]", Form.C),
        ("#pragma omp homing distribute a[block]", Form.C),
    ],
)
def test_what_is_nearly_a_directive_is_noted(text: str, form: Form) -> None:
    scanned = scan(text + "\n", "x", form)
    assert not scanned.directives
    assert not scanned.problems
    assert len(scanned.notes) == 1


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("! homing moves pages\n!$ x = 1\n!$omp parallel\nc = '!$homing'\n", Form.FREE),
        ("     !$homing is in column six: a continuation\nc homing\nc$    x = 1\n", Form.FIXED),
        (
            '/* #pragma homing x */ // #pragma homing \\\n #pragma homing y\nchar *s = "\\\n#pragma homing";',
            Form.C,
        ),
        ("char c = '\"';\n#pragma once\n#pragma GCC homing\n", Form.C),
    ],
)
def test_no_directives(text: str, form: Form) -> None:
    assert not clean(text, form).directives


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("a.F", Form.FIXED),
        ("a.f90", Form.FREE),
        ("b/a.F08", Form.FREE),
        ("a.c", Form.C),
        ("a.o", None),
        ("f", None),
    ],
)
def test_forms(path: str, form: Form | None) -> None:
    assert form_of(path) is form


def test_line_feeds_alone_end_lines() -> None:
    text = "! a\x0bb\x0cc\u2028d\x85\r\n!$homing shadow a(1)\r\n"
    found = one(text, Form.FREE)
    assert isinstance(found, Shadow)
    assert found.source.first_line == 2
    assert found.source.text == "!$homing shadow a(1)"


# --- every directive, every form ----------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "Bc", "block", "on", "with", "u_1", "distribute"])
EXPRESSIONS = st.sampled_from(["1", "n", "2*k + 1", "f(x, y)", "(n - 1)/2", "size", "max(1,n)"])
INDICES = st.one_of(EXPRESSIONS, st.sampled_from([":", "i", "j+1"]))


@dataclass(frozen=True)
class Sub:
    """A subscripted thing, to be written in either language."""

    items: tuple[str, ...]


def subscripts(item: st.SearchStrategy[str]) -> st.SearchStrategy[Sub]:
    return st.lists(item, min_size=1, max_size=3).map(lambda items: Sub(tuple(items)))


FORMATS = st.one_of(
    st.sampled_from(["*", "block", "CYCLIC"]),
    EXPRESSIONS.map("cyclic({})".format),
    EXPRESSIONS.map("gen_block({})".format),
    st.just("gen_block(3, 4, 5)"),
)
WIDTHS = st.one_of(st.sampled_from(["0", "1"]), st.just("1:2"), st.just("k : 0"))
BOUNDS = st.one_of(EXPRESSIONS, st.just("0 : n + 1"))
LOOP = st.sampled_from(["(i)", "(i, j)"])
STATEMENTS: st.SearchStrategy[tuple[Any, ...]] = st.one_of(
    st.tuples(
        st.sampled_from(["distribute", "distribute_reshape", "redistribute"]),
        NAMES,
        subscripts(FORMATS),
        st.sampled_from(["", " onto p", " onto(2, *)"]),
    ),
    st.tuples(
        st.just("align"),
        NAMES,
        subscripts(st.sampled_from(["i", ":", "*"])),
        st.just(" with "),
        NAMES,
        subscripts(st.one_of(INDICES, st.just("*"))),
    ),
    st.tuples(st.just("align"), NAMES, st.just(" with "), NAMES),
    st.tuples(st.just("template"), NAMES, subscripts(BOUNDS)),
    st.tuples(
        st.sampled_from(["processors", "memories"]), NAMES, subscripts(st.one_of(BOUNDS, st.just("*")))
    ),
    st.tuples(st.just("shadow"), NAMES, subscripts(WIDTHS), st.just(","), NAMES, subscripts(WIDTHS)),
    st.tuples(st.sampled_from(["nosequence", "dynamic"]), NAMES, st.just(","), NAMES),
    st.tuples(st.just("on home("), NAMES, subscripts(INDICES), st.just(")")),
    st.tuples(st.just("affinity"), LOOP, st.just(" = data("), NAMES, subscripts(INDICES), st.just(")")),
    st.tuples(st.just("affinity"), LOOP, st.just(" = thread("), EXPRESSIONS, st.just(")")),
    st.tuples(st.just("nest"), LOOP, st.sampled_from(["", " onto(2, 1)"])),
    st.tuples(st.just("numa")),
)  # fmt: skip


def written(pieces: tuple[Any, ...], form: Form) -> list[str]:
    """The tokens of a directive; lines may be broken between any two."""
    text = ""
    for piece in pieces:
        if isinstance(piece, Sub):
            text += (
                f"({', '.join(piece.items)})"
                if form.fortran
                else "".join(f"[{item}]" for item in piece.items)
            )
        else:
            text += f" {piece}"
    return re.findall(r"\w+|::|[^\w\s]", text)


def lines_of(tokens: list[str], breaks: list[bool], form: Form, noise: str) -> str:
    """The directive with line breaks where `breaks` says."""
    sentinel = {Form.FREE: "!$homing", Form.FIXED: "c$homing", Form.C: "#pragma homing"}[form]
    text = f"{noise if form is Form.FREE else ''}{sentinel}"
    for number, token in enumerate(tokens):
        # No break before the first token: a sentinel with nothing behind it says nothing.
        if number and breaks[number % len(breaks)]:
            text += {Form.FREE: f" &\n{noise}!$homing ", Form.FIXED: "\nc$homing+", Form.C: "\\\n"}[form]
        text += f" {token}"
    return text


@given(STATEMENTS, st.lists(st.booleans(), min_size=1, max_size=9), st.sampled_from(["", "  ", "\t"]))
def test_every_form_says_the_same(pieces: tuple[Any, ...], breaks: list[bool], noise: str) -> None:
    meanings = []
    for form in FORMS:
        tokens = written(pieces, form)
        text = f"\n{lines_of(tokens, breaks, form, noise)}\n"
        scanned = scan(text, "x", form, line_length=0)
        assert not scanned.problems, text
        assert scanned.directives
        source = scanned.directives[0].source
        lines = text.split("\n")
        assert (source.first_line, source.last_line) == (2, len(lines) - 1)
        assert source.text == text[1:-1].removeprefix(noise)
        for name in names_in(scanned.directives):
            at = name.position
            assert lines[at.line - 1][at.column - 1 :].startswith(name.text)
        sentinel = {Form.FREE: "!$homing", Form.FIXED: "c$homing", Form.C: "#pragma homing"}[form]
        plain = scan(" ".join([sentinel, *tokens]), "x", form, line_length=0)
        assert meaning(plain.directives) == meaning(scanned.directives)
        meanings.append(repr(meaning(scanned.directives)).lower())
    assert meanings[0] == meanings[1] == meanings[2]


def names_in(value: Any) -> list[Name]:
    if isinstance(value, Name):
        return [value]
    if isinstance(value, tuple):
        return [name for each in value for name in names_in(each)]
    if dataclasses.is_dataclass(value) and not isinstance(value, Source):
        return [name for each in dataclasses.fields(value) for name in names_in(getattr(value, each.name))]
    return []


# --- anything -----------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    ["!$homing", "c$homing", "#pragma homing", "#pragma", "!$sgi", "!$sgi+", "c$&", "!DEC$", "c$distribute",
     "#pragma distribute", "#pragma omp for", "!$omp do", " distribute", " reshape", " redistribute",
     " align", " with", " template", " processors", " shadow", " on home", " affinity", " nest",
     " data", " thread", " numa", " onto", " extent", "(", ")", "[", "]", ",", ":", "::", "*", "&",
     "+", "=", "a", "b1", "block", "cyclic", "gen_block", "12",
     "\n", "\\\n", "\r\n", " ", "\t", "!", "'", '"', "/*", "*/", "//", "\\", ";", "{", "%",
     "é", "\0", "\x85"]
)  # fmt: skip
ANYTHING = st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join))
_SENTINEL = re.compile(r"^[ \t\n\r\f\v]*!\$homing(?!\w)", re.I | re.M)


@settings(max_examples=300)
@given(ANYTHING, st.sampled_from(FORMS), st.sampled_from([0, 72]))
@example("!$homing distribute a(block) &\n!$homing& &\n", Form.FREE, 72)
@example("#pragma homing \\", Form.C, 72)
@example("!$omp do nest(", Form.FREE, 72)
@example("!$homing distribute ::", Form.FREE, 72)
def test_any_text(text: str, form: Form, line_length: int) -> None:
    """No text ends the scanner; what begins with homing's sentinel is in what it returns; places are real."""
    scanned = scan(text, "x", form, line_length)
    lines = text.split("\n")
    for directive in scanned.directives:
        source = directive.source
        assert 1 <= source.first_line <= source.last_line <= len(lines)
        line = lines[source.first_line - 1]
        assert line[source.position.column - 1 :].startswith(source.text.split("\n")[0].rstrip("\r"))
        for name in names_in(directive):
            at = name.position
            # A name that a line break divides stands where it begins.
            assert lines[at.line - 1][at.column - 1 :][:1] == name.text[:1]
    for problem in (*scanned.problems, *scanned.notes):
        assert 1 <= problem.position.line <= len(lines)
        assert 1 <= problem.position.column <= len(lines[problem.position.line - 1]) + 1
    if form is Form.FREE:
        told = {line for each in scanned.directives
                for line in range(each.source.first_line, each.source.last_line + 1)}  # fmt: skip
        wrong = {problem.position.line for problem in scanned.problems}
        for number, line in enumerate(lines, 1):
            if _SENTINEL.match(line) and number not in told:
                # A directive that is wrong is told once, at one of its lines.
                assert wrong, text


def test_what_a_redistribution_says() -> None:
    found = one("!$homing redistribute a(cyclic, *) onto p", Form.FREE)
    assert isinstance(found, Redistribute)
    assert found.onto is not None
    assert found.onto.arrangement == Name("p", Position("x", 1, 41), "p")
