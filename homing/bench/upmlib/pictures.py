"""The figures as PNG files: bars of model time, the moves on the critical path striped, as in the paper."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from homing.errors import UserError

#: (label, useful time, moves), relative to first touch.
Bars = Sequence[tuple[str, float, float]]


def draw(figures: Mapping[str, Mapping[str, Bars]]) -> dict[str, bytes]:
    """PNG by name. figures: by name and title of each part."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError(f"the figures need matplotlib: {error} (pip install 'homing[bench]')") from error
    pictures = {}
    for name, parts in figures.items():
        figure = Figure(figsize=(1.5 + 5.2 * len(parts), 4.2), layout="constrained")
        for at, (title, bars) in enumerate(parts.items()):
            axes = figure.add_subplot(1, len(parts), at + 1)
            labels = [label for label, _, _ in bars]
            useful = [value for _, value, _ in bars]
            axes.bar(labels, useful, color="0.65", label="useful")
            moves = [value for _, _, value in bars]
            axes.bar(labels, moves, bottom=useful, color="white", edgecolor="k", hatch="///", label="moves")
            axes.set_ylim(0, 1.1 * max([1.0, *(a + b for a, b in zip(useful, moves, strict=True))]))
            axes.axhline(1.0, color="k", linewidth=0.8)
            axes.set_title(title, fontsize=9)
            axes.set_ylabel("model time (first touch, nothing: 1)")
            axes.tick_params(axis="x", labelrotation=75, labelsize=7)
            axes.legend(fontsize=7)
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=100, metadata={"Software": None})
        pictures[name] = file.getvalue()
    return pictures
