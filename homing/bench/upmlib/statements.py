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

    def names(self, begin: str) -> list[str]:
        """All that begin so."""
        return [name for name in self._outcomes if name.startswith(begin)]

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

    def useful(self, name: str) -> float:
        """The same without moves."""
        case, outcome = self._outcomes[name]
        seconds, moves = outcome.seconds(case)
        return seconds - moves

    def time(self, name: str) -> float:
        """Relative to first touch, and nothing at work."""
        return self.seconds(name) / self.seconds(f"{name.partition('.')[0]}.ft.nothing")

    def having(self, mechanism: str, others: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those of these that were run with the mechanism, too: a bench may be interrupted."""
        return [(one, place) for one, place in others if f"{one}.{place}.{mechanism}" in self]


def statements(found: Found) -> Iterator[Statement]:
    """Those of Figures 3 to 6 for which there are runs."""
    programs = found.programs()
    others = [(one, place) for one in programs for place in found.placements(one)]
    if others:
        yield _slower(found, others)
    if migrated := found.having("iterative", found.having("kernel", others)):
        yield _kernel(found, migrated)
    if moved := found.having("iterative", others):
        yield _iterative(found, moved)
        yield _last_half(found, moved)
    yield from _sampling(found, found.having("sampling", moved))
    for program in paper.PHASED:
        if f"{program}.ft.replay" in found and f"{program}.ft.iterative" in found:
            yield from _replay(found, program)
    if "bt4.ft.replay" in found and "bt4.ft.iterative" in found:
        yield _quadrupled(found)


def _percent(value: float) -> str:
    return f"{100 * value:+.0f} %"


def _by_program(found: Mapping[str, list[float]]) -> str:
    """What was found for each program, in percent."""
    parts = []
    for program, values in found.items():
        least, most = min(values), max(values)
        text = (
            _percent(least)
            if round(100 * least) == round(100 * most)
            else f"{_percent(least)} to {_percent(most)}"
        )
        parts.append(f"{program.upper()} {text}")
    return ", ".join(parts)


def _times(found: Found, others: list[tuple[str, str]], mechanism: str) -> dict[str, list[float]]:
    """By program: time over that of first touch, less one, of all placements."""
    times: dict[str, list[float]] = {}
    for one, place in others:
        times.setdefault(one, []).append(found.time(f"{one}.{place}.{mechanism}") - 1)
    return times


def _slower(found: Found, others: list[tuple[str, str]]) -> Statement:
    more = _times(found, others, "nothing")
    every = [value for values in more.values() for value in values]
    return Statement(
        "Figure 3: other placements than first touch take 24 to 210 % longer",
        min(every) >= 0.24 and max(every) <= 2.1,
        f"{_by_program(more)}{_queues(found, [one for one, place in others if place == 'wc'])}",
    )


def _queues(found: Found, programs: list[str]) -> str:
    """The model of time has no queues at a node's memory. Where all pages lie on one node, its memory serves
    all misses: how long that takes at the least beside what an iteration takes in the model."""
    parts = []
    for program in programs:
        one = found[f"{program}.wc.nothing"]
        served = one.misses[1] / max(1, one.simulated // 2) * paper.LINE_BYTES / paper.NODE_BYTES_A_SECOND
        taken = found.seconds(f"{program}.wc.nothing") / paper.PROGRAMS[program].steps
        parts.append(f"{program.upper()} {served:.2f} s of {taken:.2f}")
    if not parts:
        return ""
    return (
        f"; one node's memory alone serves the misses of the worst case in: {', '.join(parts)} an iteration"
    )


def _kernel(found: Found, others: list[tuple[str, str]]) -> Statement:
    """Times as means over the placements of all programs, without moves (theirs are in the iterations)."""
    useful = {
        mechanism: [
            found.useful(f"{one}.{place}.{mechanism}") / _first_touch(found, one) for one, place in others
        ]
        for mechanism in ("nothing", "kernel", "iterative")
    }
    nothing, kernel, iterative = (sum(times) / len(times) for times in useful.values())
    by_program: dict[str, list[float]] = {}
    for (one, place), time in zip(others, useful["kernel"], strict=True):
        more = time / (found.useful(f"{one}.{place}.nothing") / _first_touch(found, one)) - 1
        by_program.setdefault(one, []).append(more)
    return Statement(
        "Figure 3: kernel migration improves on these placements, and less than the iterative mechanism",
        iterative < kernel < nothing,
        f"{kernel:.2f} of first touch without moves, iterative {iterative:.2f}, nothing {nothing:.2f}; "
        f"against nothing {_by_program(by_program)}",
    )


def _first_touch(found: Found, program: str) -> float:
    return found.seconds(f"{program}.ft.nothing")


def _iterative(found: Found, others: list[tuple[str, str]]) -> Statement:
    more = _times(found, others, "iterative")
    means = {program: sum(values) / len(values) for program, values in more.items()}
    text = ", ".join(f"{program.upper()} {_percent(mean)}" for program, mean in means.items())
    free: dict[str, list[float]] = {}
    for one, place in others:
        useful = found.useful(f"{one}.{place}.iterative") / found.seconds(f"{one}.ft.nothing") - 1
        free.setdefault(one, []).append(useful)
    text += f"; were moves free: {_by_program(free)}"
    # What no mechanism can do at these costs.
    for program in means:
        moved = max(found[f"{program}.{place}.iterative"].moved for one, place in others if one == program)
        moving, whole = moved * paper.PAGE_SECONDS, found.seconds(f"{program}.ft.nothing")
        if moving > 0.05 * whole:
            text += (
                f"; {program.upper()} moves {moved:,} pages, which alone take {moving:.1f} s at the paper's "
                f"cost of a page, of a run of {whole:.1f} s"
            )
    return Statement(
        "Figure 3: iterative is within 5 % of first touch on average",
        sum(means.values()) / len(means) <= 0.05,
        text,
    )


def _last_half(found: Found, others: list[tuple[str, str]]) -> Statement:
    points: dict[str, list[float]] = {}
    for one, place in others:
        last = found[f"{one}.{place}.iterative"].last_half - found[f"{one}.ft.nothing"].last_half
        points.setdefault(one, []).append(100 * last)
    text = ", ".join(f"{one.upper()} {min(some):+.1f} to {max(some):+.1f}" for one, some in points.items())
    return Statement(
        "Figure 3: in the last half of the iterations iterative is within 1 point of first touch",
        max(max(some) for some in points.values()) <= 1,
        f"{text} points of remote misses",
    )


def _sampling(found: Found, others: list[tuple[str, str]]) -> Iterator[Statement]:
    for program in found.programs():
        places = [place for one, place in others if one == program]
        if not places:
            continue
        ratios = [
            found.time(f"{program}.{place}.sampling") / found.time(f"{program}.{place}.iterative")
            for place in places
        ]
        mean = sum(ratios) / len(ratios) - 1
        # Only the iterative mechanism's moves are on the critical path.
        useful = [
            found.useful(f"{program}.{place}.sampling") / found.useful(f"{program}.{place}.iterative")
            for place in places
        ]
        without = sum(useful) / len(useful) - 1
        if program in ("bt", "sp"):
            text, holds = f"Figure 4: {program.upper()} sampled is as good as iterative", mean <= 0.05
        else:
            text, holds = f"Figure 4: {program.upper()} sampled is clearly worse than iterative", mean > 0.05
        shares = [
            sum(found[f"{program}.{place}.{mechanism}"].last_half for place in places) / len(places)
            for mechanism in ("sampling", "iterative")
        ]
        yield Statement(
            text,
            holds,
            f"{_percent(mean)}; {_percent(without)} were moves free; remote in the last half {shares[0]:.0%} "
            f"to {shares[1]:.0%}",
        )


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
        f"{eligible:.0f}{_otherwise(found, program)}",
    )


def _otherwise(found: Found, program: str) -> str:
    """With larger pages there are fewer; with another threshold, or a larger plan, not."""
    parts = []
    for name in found.names(f"{program}.ft.replay@"):
        what = name.partition("@")[2]
        said = f"pages of {what}"
        if what.startswith("thr"):
            said = f"threshold {what.removeprefix('thr')}"
        elif what.startswith("n"):
            said = f"a plan of {what.removeprefix('n')}"
        parts.append(f"{found[name].phase.get('eligible', 0):.0f} with {said}")
    return "".join(f"; {part}" for part in parts)


def _quadrupled(found: Found) -> Statement:
    ratio = found.time("bt4.ft.replay") / found.time("bt4.ft.iterative")
    return Statement(
        "Figure 6: with quadrupled work record/replay is 5 % faster than iterative",
        ratio <= 0.98,
        f"{_percent(ratio - 1)}{_of_a_step(found, 'bt4.ft.replay')}",
    )


def _of_a_step(found: Found, name: str) -> str:
    """What replaying saves in an iteration, beside first touch alone, and what it takes."""
    plain = f"{name.partition('.')[0]}.ft.nothing"
    replays = found[name].phase.get("replays", 0)
    if plain not in found or not replays:
        return ""
    steps = paper.PROGRAMS["bt"].steps
    saved = (found.useful(plain) - found.useful(name)) / steps
    taken = (found.seconds(name) - found.useful(name)) / steps
    return (
        f"; an iteration saves {1e3 * saved:.0f} ms by the plan, and takes {1e3 * taken:.0f} ms for its moves"
    )
