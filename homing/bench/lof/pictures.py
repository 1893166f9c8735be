"""The figures as PNG files."""

from __future__ import annotations

import io
from collections.abc import Mapping

from homing.bench.lof.tables import Curves
from homing.errors import UserError

_MARKS = {"UMA": "k-", "SI": "C3s-", "PI": "C0^-", "SI+MIG": "C2o-", "SI+TMIG": "C2o-"}


def draw(curves: Mapping[str, Curves]) -> dict[str, bytes]:
    """One picture for each of Figures 1, 2 and 3: PNG by name. curves: by figure and part ("1a")."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError(f"the figures need matplotlib: {error} (pip install 'homing[bench]')") from error
    pictures = {}
    for number in sorted({name[0] for name in curves}):
        parts = [curves[name] for name in sorted(curves) if name.startswith(number)]
        figure = Figure(figsize=(5.2 * len(parts), 3.8), layout="constrained")
        for at, part in enumerate(parts):
            axes = figure.add_subplot(1, len(parts), at + 1)
            for name, seconds in part.lines.items():
                axes.plot(range(1, len(seconds) + 1), seconds, _MARKS[name], label=name, markersize=3.5)
            axes.set_title(part.title, fontsize=9)
            axes.set_xlabel("iteration")
            axes.set_ylabel("model time (s)")
            axes.set_ylim(0, 1.1 * max(float(seconds.max()) for seconds in part.lines.values()))
            axes.legend(fontsize=8)
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=110, metadata={"Software": None})
        pictures[f"figure{number}"] = file.getvalue()
    return pictures
