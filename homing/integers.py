"""Whole numbers in texts that others wrote. int() takes more than a file format means (`²`.isdigit() is true
and fails, `٣` and `1_0` are numbers) and raises on more than 4,300 digits."""

from __future__ import annotations

from homing.late import pattern

_DECIMAL = pattern(r"(?a)[0-9]{1,18}")


def decimal(text: str) -> int | None:
    """The number, of at most 18 digits 0 to 9; None for anything else."""
    return int(text) if _DECIMAL.fullmatch(text) else None


def within(digits: str, most: int) -> int:
    """The number of these digits 0 to 9, however many; most + 1 for every one that is larger."""
    number = decimal(digits.lstrip("0") or "0")
    return most + 1 if number is None or number > most else number
