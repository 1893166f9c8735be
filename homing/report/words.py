"""Numbers for people."""

from __future__ import annotations

import errno
import math
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def size(value: float) -> str:
    """Bytes: 64 KiB, 1.5 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def duration(seconds: float) -> str:
    """Seconds: 85 us, 1.6 ms, 12 ms, 1.5 s."""
    if seconds < 999.5e-6:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 999.5e-3:
        milliseconds = seconds * 1e3
        return f"{milliseconds:.2g} ms" if milliseconds < 9.95 else f"{milliseconds:.0f} ms"
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:.0f} s"


def number(value: int) -> str:
    """A count: 12,345."""
    return f"{value:,}"


def percent(value: float) -> str:
    """A fraction in per cent; a question mark where it is not known."""
    return "?" if math.isnan(value) else f"{100 * value:.{0 if value >= 0.0995 else 1}f} %"


def percents(values: Sequence[float]) -> str:
    """Several of them: one, or from the least to the most."""
    least, most = percent(min(values)), percent(max(values))
    return least if least == most else f"{least.removesuffix(' %')} to {most}"


def error_words(error: int) -> str:
    """An errno as its name and the system's words."""
    name = errno.errorcode.get(abs(error), f"errno {abs(error)}")
    return f"{name} ({os.strerror(abs(error))})" if name in errno.errorcode.values() else name


def refused_words(errors: Mapping[int, int]) -> str:
    """Pages that were refused, by errno."""
    return ", ".join(f"{number(pages)} {error_words(error)}" for error, pages in sorted(errors.items()))


def some(names: list[str], most: int = 3) -> str:
    """The first few of a list, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


#: Names that take more room are cut where people read them: a program may give any (homing_watch).
NAME_WIDTH = 200


def cut(name: str) -> str:
    """A name, without its middle where it is too long."""
    if len(name) <= NAME_WIDTH:
        return name
    end = NAME_WIDTH // 3
    return f"{name[: NAME_WIDTH - end - 3]}...{name[-end:]}"
