"""The table of options: what the command refuses is what the library would not understand."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.errors import UserError
from homing.options import check_environment, load_options, parse_size

SIZES = [
    line.rsplit(" ", 1)
    for line in (Path(__file__).parents[1] / "sizes.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("text", "size"), SIZES)
def test_sizes_are_those_of_the_library(text: str, size: str) -> None:
    assert parse_size(text) == (None if size == "no" else int(size))
    minimum = next(option for option in load_options() if option.name == "area_minimum")
    if size != "no":
        minimum.check(text)
    else:
        with pytest.raises(UserError, match="must be a size"):
            minimum.check(text)


@pytest.mark.parametrize("name", ["replay_pages", "sampling_pages", "seed", "record_samples"])
def test_what_counts_is_a_whole_number(name: str) -> None:
    option = next(option for option in load_options() if option.name == name)
    for text in ("0", "20", "1e3", "7.0"):
        option.check(text)
    for text in ("1.5", "0.1", "inf"):
        with pytest.raises(UserError, match=f"^{option.flag} {text}: must be a whole number"):
            option.check(text)


@pytest.mark.parametrize("nodes", ["65", "5000000000", "-1", "nan", "four"])
def test_more_nodes_than_there_can_be_are_refused(nodes: str) -> None:
    with pytest.raises(
        UserError, match=f"^HOMING_ASSUME_NODES {nodes}: must be a whole number from 0 to 64$"
    ):
        check_environment(load_options(), {"HOMING_ASSUME_NODES": nodes})
    check_environment(load_options(), {"HOMING_ASSUME_NODES": "64"})
