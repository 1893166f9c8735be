"""What cannot be translated of C is an error with its place and reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import PROGRAMS

C_REFUSED = [
    (
        "double a[9];\n#pragma homing distribute a[gen_block(unknown)]\na[0] = 0;",
        "'unknown' is not declared",
    ),
    ("double *a = 0;\n#pragma homing distribute a[block] extent(n)\na[0] = 0;", "'n' is not declared"),
    (
        "int of = 9; double a[9];\n#pragma homing distribute a[gen_block(of)]\na[0] = of;",
        "the sizes 'of' are no array that is declared here",
    ),
    (
        "int n = 3; typedef int line[n]; line *b = 0;\n#pragma homing distribute b[block][*] extent(9, n)\n"
        "#pragma omp parallel for\nfor (int i = 0; i < 9; i++) b[i][0] = i;",
        "'line' is a type of arrays: write the brackets behind 'b'",
    ),
    *(
        (f"double a[9];\n#pragma homing distribute a[block]\n{declared}\n#pragma omp parallel for\n"
         f"for (int i = 0; i < 9; i += by) {{ a[i] = 0; {body} }}", reason)
        for declared, body, reason in [
            ("int by = 2;", "by = 3;", "'by' of the loop over 'i' is changed in the loop"),
            ("double by = 2;", "", "'by' of the loop over 'i' is no integer variable"),
            ("volatile int by = 2;", "", "'by' of the loop over 'i' is"),
        ]
    ),
    ("double *a;\n#pragma homing distribute a[block]\n(void)a;", "EXTENT"),
    ("double a[9];\n#pragma homing distribute a[block]\n#pragma omp parallel for\n"
     "for (int i = 0; i < 9; i++) memset(&a[i], 0, 8);", "memset of a piece"),
    ("double a[9][4];\n#pragma homing distribute a[block][*]\n#pragma omp parallel for\n"
     "for (int i = 0; i < 9; i++) memset(a[i], 0, 2 * sizeof a[i]);", "memset of a piece"),
    ("double a[9];\n#pragma homing distribute a[block]\ndouble *q = &a[2]; (void)q;", "another name"),
    *(
        (f"double a[9];\n#pragma homing distribute a[block]\nint k = 2; double *q = &a[k];\n{then}",
         "another name")
        for then in ["k = 0; *q = 1;", "q++; *q = 1;", "for (int k = 0; k < 2; k++) q[k] = 1;",
                     "#pragma omp parallel private(k)\n*q = 1;", "#pragma omp task\n*q = 1;"]
    ),
    ("char w[9] = {0}, *end;\n#pragma homing distribute w[block]\n"
     "if (strtok_r(&w[0], \"-\", &end)) w[0] = *end;", "another name"),
    ("char w[9] = {0};\n#pragma homing distribute w[block]\n"
     "if (strtok(&w[0], \"-\")) w[0] = 1;", "another name"),
    ("char a[9][4];\n#pragma homing distribute a[block][*]\n#pragma omp parallel for\n"
     "for (int i = 0; i < 9; i++) sprintf(a[i], \"%d\", i);",
     "a row of it goes to 'sprintf', which may use more"),
    ("double a[9];\n#pragma homing distribute a[block]\n#pragma omp parallel for\n"
     "for (int i = 0; i < 9; i++) { a[i * i] = 0; }", "not a loop's index plus a number"),
    ("int n = 9;\ndouble a[81];\n#pragma homing distribute a[block]\n#pragma omp parallel for\n"
     "for (int i = 0; i < 9; i++)\n for (int j = 0; j < 9; j++) a[i * n + j] = 0;",
     "not a loop's index plus a number: declare rows as a dimension, a[i][j]"),
    ("double a[9][9], q = 0;\n#pragma homing distribute a[*][block]\n#pragma omp parallel for private(q)\n"
     "for (int j = 0; j < 9; j++)\n for (int i = 0; i < 9; i++)\n  switch (i % 2) {\n"
     "  case 0: q = i; break;\n  default: a[j][i] = q;\n  }", "leaves a value in 'q' for the next one"),
]  # fmt: skip


@pytest.mark.parametrize(
    "word", ["longjmp(e, 1);", "int k __attribute__((cleanup(end))) = 0;", "[[gnu::cleanup(end)]] int k = 0;"]
)
def test_code_that_no_statement_shows_is_refused(tmp_path: Path, word: str) -> None:
    path = tmp_path / "p.c"
    head = "#include <setjmp.h>\nstatic jmp_buf e; static double a[9];\n#pragma homing distribute a[block]\n"
    head += "static void end(int *k) { a[*k] = 1; }\n"
    path.write_text(
        head + "int main(void) { if (!setjmp(e)) { " + word + " } end(&(int){2}); return a[2] < 1; }\n"
    )
    with pytest.raises(TranslationError, match=r"p\.c:5:\d+: (longjmp|cleanup) is not followed"):
        translate([str(path)], Options("spmd"))


@pytest.mark.parametrize(("body", "reason"), C_REFUSED)
def test_refused_in_c(tmp_path: Path, body: str, reason: str) -> None:
    path = tmp_path / "p.c"
    path.write_text("#include <string.h>\nint main(void) {\n" + body + "\nreturn 0;\n}\n")
    with pytest.raises(TranslationError) as caught:
        translate([str(path)], Options("spmd"))
    assert any(reason in problem.reason for problem in caught.value.problems), str(caught.value)


#: Functions that get a row of M elements, and what else they get; shown to use no others: the first two.
ROWS_OF = [
    ("int n", "for (int j = n - 1; j >= 0; j--) r[j] = r[0] + j;", "M"),
    ("int n", "for (int j = 1; j <= n; j++) r[j] = r[j - 1];", "M - 1"),
    ("int n", "for (int j = 0; j < n; j++) r[j] = j;", "M + 1"),
    ("int n", "for (int j = 0; j < n; j++) r[j] = j;", "k"),
    ("int n", "n++; for (int j = 0; j < n; j++) r[j] = j;", "M"),
    ("int n", "for (int j = 0; j < n; j++) r[j] = r[j - M];", "M"),
    ("int n", "for (int j = 0; j < n; j++) *r++ = j;", "M"),
    ("int n", "g = r; r[0] = n;", "M"),
]


def test_rows_of_which_functions_may_use_more(tmp_path: Path) -> None:
    path = tmp_path / "p.c"
    for number, (arguments, body, given) in enumerate(ROWS_OF):
        path.write_text(
            "#define M 5\nstatic double u[9][M], *g;\n#pragma homing distribute u[block][*]\n"
            f"static void f(double *r, {arguments}) {{ {body} }}\nint main(void) {{ int k = 3; k++; g = 0;\n"
            f"#pragma omp parallel for\nfor (int i = 0; i < 9; i++) f(u[i], {given});\nreturn *g + k; }}\n"
        )
        if number < 2:
            translate([str(path)], Options("spmd"))
            continue
        with pytest.raises(TranslationError, match="a piece of the distributed 'u' is passed on"):
            translate([str(path)], Options("spmd"))


#: A function that works on parts beside elements: it cannot be called before the statement.


SPELLED = [
    ("%:pragma homing distribute a[block]", "%:"),
    (
        "#pragma homing distribute a[block]\nfor (int i = 0; i < 9; i++) <% a[i] = 0; }",
        "<%",
    ),
    ("#pragma homing distribute a[block]\na<:1] = 0;", "<:"),
]


@pytest.mark.parametrize(("text", "word"), SPELLED)
def test_other_ways_to_write_brackets_are_refused_by_their_name(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "p.c"
    path.write_text(f"static double a[9];\nint main(void) {{\n{text}\nreturn 0; }}\n")
    with pytest.raises(TranslationError, match=rf"digraphs and trigraphs are not read: .*: {word}$"):
        translate([str(path)], Options("spmd"))


def test_what_looks_like_them_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.cpp"
    path.write_text(
        "static const int k = 3;\nstatic double a[9];\n#pragma homing distribute a[block]\n"
        "int main() {\n#pragma omp parallel for\nfor (int i = 0; i < 9; i++) a[i] = i<::k;\n"
        'const char *text = "<%"; /* ??( */\nreturn text[0] == a[3]; }\n'
    )
    translate([str(path)], Options("spmd"))


def test_a_case_on_the_line_of_what_works_on_a_whole_array(tmp_path: Path) -> None:
    """The array was gathered before the CASE, to which SWITCH leads past that."""
    path = tmp_path / "p.c"
    text = (PROGRAMS / "heads.c").read_text()
    path.write_text(text.replace("        default:\n            printf", "        default: printf", 1))
    with pytest.raises(TranslationError, match="works on whole arrays beside code"):
        translate([str(path)], Options("spmd"))
