"""The paper's statements, each beside what was found: holds, or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from homing.bench.upmlib import paper
from homing.bench.upmlib.runs import Case, Outcome


@dataclass(frozen=True)
class Statement:
    """What the paper says, whether it holds here, and the numbers."""

    text: str
    holds: bool
    found: str


class Found:
    """Outcomes by program, placement and mechanism, with times relative to first touch without anything."""

    def __init__(self, outcomes: Mapping[Case, Outcome]) -> None:
        self._outcomes = {case.name: (case, outcome) for case, outcome in outcomes.items()}

    def __getitem__(self, name: str) -> Outcome:
        return self._outcomes[name][1]

    def __contains__(self, name: str) -> bool:
        return name in self._outcomes

    def programs(self) -> list[str]:
        """Those of Figures 3 and 4."""
        return sorted({name.partition(".")[0] for name in self._outcomes if name.endswith(".ft.sampling")})

    def placements(self, program: str) -> list[str]:
        """Other than first touch."""
        names = (name.split(".") for name in self._outcomes if name.endswith(".nothing"))
        return [placement for one, placement, _ in names if one == program and placement != "ft"]

    def seconds(self, name: str) -> float:
        """Model time."""
        case, outcome = self._outcomes[name]
        return outcome.seconds(case)[0]

    def time(self, name: str) -> float:
        """Relative to first touch, and nothing at work."""
        return self.seconds(name) / self.seconds(f"{name.partition('.')[0]}.ft.nothing")


def statements(found: Found) -> Iterator[Statement]:
    """Those of Figures 3 to 6 for which there are runs."""
    programs = found.programs()
    others = [(one, place) for one in programs for place in found.placements(one)]
    if others:
        yield _slower(found, others)
        yield _iterative(found, others)
        yield _last_half(found, others)
    yield from _sampling(found, others)
    for program in ("bt", "sp"):
        if f"{program}.ft.replay" in found:
            yield from _replay(found, program)
    if "bt4.ft.replay" in found:
        yield _quadrupled(found)


def _percent(value: float) -> str:
    return f"{100 * value:+.0f} %"


def _slower(found: Found, others: list[tuple[str, str]]) -> Statement:
    more = [found.time(f"{one}.{place}.nothing") - 1 for one, place in others]
    return Statement(
        "Figure 3: other placements than first touch take 24 to 210 % longer",
        min(more) >= 0.24 and max(more) <= 2.1,
        f"{_percent(min(more))} to {_percent(max(more))}; the model has no queues at a node's memory",
    )


def _iterative(found: Found, others: list[tuple[str, str]]) -> Statement:
    more = [found.time(f"{one}.{place}.iterative") - 1 for one, place in others]
    mean = sum(more) / len(more)
    return Statement(
        "Figure 3: iterative is within 5 % of first touch on average", mean <= 0.05, _percent(mean)
    )


def _last_half(found: Found, others: list[tuple[str, str]]) -> Statement:
    points = {
        f"{one}.{place}": found[f"{one}.{place}.iterative"].last_half - found[f"{one}.ft.nothing"].last_half
        for one, place in others
    }
    worst = max(points, key=lambda name: points[name])
    return Statement(
        "Figure 3: in the last half of the iterations iterative is within 1 point of first touch",
        points[worst] <= 0.01,
        f"{worst}: {100 * points[worst]:+.1f} points of remote misses",
    )


def _sampling(found: Found, others: list[tuple[str, str]]) -> Iterator[Statement]:
    for program in found.programs():
        ratios = [
            found.time(f"{program}.{place}.sampling") / found.time(f"{program}.{place}.iterative")
            for one, place in others
            if one == program
        ]
        if not ratios:
            continue
        mean = sum(ratios) / len(ratios) - 1
        if program in ("bt", "sp"):
            text, holds = f"Figure 4: {program.upper()} sampled is as good as iterative", mean <= 0.05
        else:
            text, holds = f"Figure 4: {program.upper()} sampled is clearly worse than iterative", mean > 0.05
        yield Statement(text, holds, _percent(mean))


def _replay(found: Found, program: str) -> Iterator[Statement]:
    name = program.upper()
    iterative, replay = found.time(f"{program}.ft.iterative"), found.time(f"{program}.ft.replay")
    yield Statement(
        f"Figure 5: record/replay gains nothing in {name}",
        replay >= iterative,
        f"{_percent(replay / iterative - 1)}",
    )
    if f"{program}.ft.hybrid" in found:
        hybrid = found.time(f"{program}.ft.hybrid")
        yield Statement(
            f"Figure 5: the hybrid is better than record/replay in {name}, and behind iterative",
            iterative <= hybrid <= replay,
            f"iterative {iterative:.3f}, hybrid {hybrid:.3f}, record/replay {replay:.3f}",
        )
    eligible = found[f"{program}.ft.replay"].phase.get("eligible", 0)
    least, most = paper.CRITICAL
    yield Statement(
        f"Figure 5: {least} to {most} pages of {name} are identified",
        least <= eligible <= most,
        f"{eligible:.0f}",
    )


def _quadrupled(found: Found) -> Statement:
    ratio = found.time("bt4.ft.replay") / found.time("bt4.ft.iterative")
    return Statement(
        "Figure 6: with quadrupled work record/replay is 5 % faster than iterative",
        ratio <= 0.98,
        _percent(ratio - 1),
    )
