"""What the model's belief knows after so many touches: rows and checks of `homing bench sampling`.

The numbers come from benchmarks/belief.cpp, borders.cpp and questions.cpp, which make up areas whose owners
are known. Those of 0.1.0's learner on the same areas are kept in learner_of_0_1_0.json: its code is gone.
"""

from __future__ import annotations

import json
import os
from typing import Any

from homing.bench.results import Check, Results, Row

#: Touches by which a pattern must be decided, the share of pages that must be right then, and of those that
#: may be sent wrong.
DECIDED = {
    "block": (8, 0.99, 0.005),
    "halo_5": (8, 0.99, 0.005),
    "stray_10": (8, 0.97, 0.005),
    "single": (8, 0.99, 0.005),
    "shared": (40, 0.99, 0.005),
    "cyclic": (40, 0.99, 0.005),
    "tiles": (40, 0.99, 0.005),
    "two_grids": (40, 0.99, 0.005),
}
#: Shares of pages: moved although they lay right; sent wrong where there is no pattern.
MOST_HARM, MOST_WRONG_IRREGULAR = 0.005, 0.01
#: Of the possible gain, after 200 touches over 60 areas.
LEAST_GAIN = 0.9
#: Points by which the belief may be below the old learner without being behind it: what 400 areas scatter.
_SAME = 0.5
LEARNER_OF_0_1_0 = os.path.join(os.path.dirname(os.path.abspath(__file__)), "learner_of_0_1_0.json")

Entries = dict[str, list[dict[str, float]]]


def with_old_learner(patterns: Entries, areas: int) -> Entries:
    """The same with old_right, old_wrong, old_harm: what 0.1.0's learner made of these areas and touches."""
    with open(LEARNER_OF_0_1_0, encoding="utf-8") as file:
        old = json.load(file)["areas"][str(areas)]
    names = ("old_right", "old_wrong", "old_harm")
    return {
        name: [one | dict(zip(names, old[name][str(one["touches"])], strict=True)) for one in entries]
        for name, entries in patterns.items()
    }


def touches(results: Results, data: dict[str, Any]) -> None:
    """What is right and what is sent wrong by the number of touches, beside the learner of 0.1.0."""
    patterns = with_old_learner(data["patterns"], data["areas"])
    results.texts.append(_table(patterns, data["areas"]))
    for name, entries in patterns.items():
        for one in entries:
            for what in ("right", "wrong", "harm", "old_right", "old_wrong", "old_harm"):
                row = f"touches.{name}.{int(one['touches'])}.{what}"
                results.rows.append(Row(row, one[what] / 100, "fraction of pages"))
    results.checks += [_decided(name, patterns[name]) for name in DECIDED if name in patterns]
    harm, pattern, count = max(
        (one["harm"], name, int(one["touches"])) for name, entries in patterns.items() for one in entries
    )
    results.checks.append(
        Check(
            f"at most {MOST_HARM:.1%} of the pages that lie right are moved, after any number of touches",
            harm <= 100 * MOST_HARM,
            f"worst {harm:.2f} % ({pattern}, {count} touches)",
        )
    )
    if "irregular" in patterns:
        wrong = max(one["wrong"] for one in patterns["irregular"])
        results.checks.append(
            Check(
                f"irregular: at most {MOST_WRONG_IRREGULAR:.0%} of the pages are sent wrong",
                wrong <= 100 * MOST_WRONG_IRREGULAR,
                f"worst {wrong:.2f} %",
            )
        )
    behind = [
        f"{name} at {int(one['touches'])}"
        for name, entries in patterns.items()
        for one in entries
        if one["right"] - one["wrong"] < one["old_right"] - one["old_wrong"] - _SAME
    ]
    results.checks.append(
        Check(
            f"nowhere behind 0.1.0's learner (pages right less pages wrong, within {_SAME} points)",
            not behind,
            ", ".join(behind) or "nowhere",
        )
    )


def _decided(name: str, entries: list[dict[str, float]]) -> Check:
    count, least, most = DECIDED[name]
    one = next(entry for entry in entries if entry["touches"] == count)
    return Check(
        f"{name}: after {count} touches {least:.0%} of the pages are right, at most {most:.1%} sent wrong",
        one["right"] >= 100 * least and one["wrong"] <= 100 * most,
        f"{one['right']:.1f} % right, {one['wrong']:.2f} % wrong",
    )


def _table(patterns: Entries, areas: int) -> str:
    counts = [int(entry["touches"]) for entry in next(iter(patterns.values()))]
    lines = [
        f"Pages right/sent wrong, in percent, after so many touches (means of {areas} areas, 4 to 16 nodes)",
        f"{'':13}{'':8}" + "".join(f"{count:>11}" for count in counts),
    ]
    for name, entries in patterns.items():
        for who, prefix in (("belief", ""), ("0.1.0", "old_")):
            cells = [f"{one[prefix + 'right']:.1f}/{one[prefix + 'wrong']:.1f}" for one in entries]
            lines.append(f"{'' if prefix else name:13}{who:8}" + "".join(f"{cell:>11}" for cell in cells))
    return "\n".join(lines)


def borders(results: Results, data: dict[str, Any]) -> None:
    """What lies right, and what was sent wrong, after touches that the model chose."""
    kinds = data["kinds"]
    counts = list(next(iter(kinds.values())))
    lines = [
        f"Pages right/sent wrong, in percent, after so many touches where the model asks (means of "
        f"{data['areas']} areas, 4 nodes)",
        f"{'':13}" + "".join(f"{count:>13}" for count in counts),
    ]
    for kind, entries in kinds.items():
        lines.append(
            f"{kind:13}" + "".join(f"{right:>8.2f}/{wrong:.2f}" for right, wrong in entries.values())
        )
        for count, (right, wrong) in entries.items():
            results.rows.append(Row(f"borders.{kind}.{count}.right", right / 100, "fraction of pages"))
            results.rows.append(Row(f"borders.{kind}.{count}.wrong", wrong / 100, "fraction of pages"))
    results.texts.append("\n".join(lines))


def areas(results: Results, data: dict[str, Any]) -> None:
    """What 200 touches bring where a program has 60 areas, by the way they are spent."""
    for way, shares in data["ways"].items():
        for count, (mean, worst) in shares.items():
            note = f"worst of {data['programs']} programs {worst:.3f}"
            results.rows.append(Row(f"areas.{way}.{count}", mean, "share of the possible gain", note))
    reached = data["ways"]["worth"]["200"][0]
    results.checks.append(
        Check(
            f"200 touches over 60 areas bring {LEAST_GAIN:.0%} of the possible gain home",
            reached >= LEAST_GAIN,
            f"{reached:.1%}",
        )
    )
