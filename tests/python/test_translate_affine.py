"""Subscripts and bounds as sums: what is known of an index without running the program."""

from __future__ import annotations

import pytest

from homing.translate.affine import affine


@pytest.mark.parametrize(
    ("text", "constant", "terms"),
    [
        ("is - 1", -1, (("is", 1),)),
        ("2*(in + 3) - in", 6, (("in", 1),)),
        ("lambda/2*4", 0, (("lambda / 2", 4),)),
        ("-not**2 + 1_8", 1, (("not ** 2", -1),)),
        ("if%or(3) - (1 - i)", -1, (("i", 1), ("if % or(3)", 1))),
        ("n + int(b'10') - int(z'F')", 0, (("int(b'10')", 1), ("int(z'F')", -1), ("n", 1))),
        ("f(L'a', u8\"x\")", 0, (("f(L'a', u8\"x\")", 1),)),
        ("a + b << 2", 0, (("a + b << 2", 1),)),
    ],
)
def test_sums_of_any_names(text: str, constant: int, terms: tuple[tuple[str, int], ...]) -> None:
    value = affine(text)
    assert (value.constant, value.terms) == (constant, terms)


@pytest.mark.parametrize(
    "text", ["i - mod(i, 4)", "i - i % 4", "2*i + n/i", "i + k(i)", "i - i", "mod(i, 4)"]
)
def test_an_index_inside_another_term_is_hidden(text: str) -> None:
    value = affine(text)
    assert value.coefficient("i") == 0 and value.hides("i")
    assert text == "i - i" or "i" in value.without("i").names
    assert not affine("i - mod(j, 4)").hides("i") and affine("i - mod(j, 4)").coefficient("i") == 1
