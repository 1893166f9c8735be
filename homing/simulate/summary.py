"""The lines that a simulated run adds to the summary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Arrays, and source lines, that are shown.
MOST_SHOWN = 6


def simulated(counts: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """(label, text): the stated cache, who served the misses, the arrays behind the remote ones, time."""
    cache, run = counts["cache"], counts["run"]
    in_cache = f"in {cache_text(cache)}" if cache else "in a cache that the record does not name"
    yield "", f"{in_cache}; other caches give other fractions: --sweep cache shows them"
    shares = run["home_shares"]
    if len(shares) <= 8:
        text = ", ".join(f"node {node} {percent(share)}" for node, share in enumerate(shares))
    else:
        busiest = max(range(len(shares)), key=lambda node: shares[node])
        text = f"{len(shares)} nodes, the busiest is node {busiest} with {percent(shares[busiest])}"
    yield "served by", text
    arrays = sorted(counts["areas"], key=lambda one: -one["remote_misses"])
    variables = [one["variable"] for one in arrays]

    def name(one: dict[str, Any]) -> str:
        # A variable that several arrays have is no name of any.
        alone = one["variable"] and variables.count(one["variable"]) == 1
        return str(one["variable"] if alone else one["title"])

    shown = [
        f"{name(one)} {percent(one['remote_fraction'])} of {one['total_misses']:,}"
        for one in arrays[:MOST_SHOWN]
        if one["total_misses"] >= 0.005 * max(1, run["total_misses"])
    ]
    if shown:
        yield "arrays", "remote: " + ", ".join(shown)
    unknown = 1 - sum(one["share"] for one in counts["areas"])
    # Of a process that was killed there is nothing by array.
    if unknown > 0.02 and run["oracle_remote_misses"] is not None:
        yield "", f"{percent(unknown)} of the misses are in none of the watched arrays"
    for one in counts["lines"][:MOST_SHOWN]:
        where = f"{one['file'].rsplit('/', 1)[-1]}:{one['line']}" if one["line"] else one["function"]
        yield "line", f"{where}  {percent(one['remote_fraction'])} of {one['total_misses']:,} misses remote"
    if (kernel := counts.get("balancing")) is not None:
        yield (
            "balancing",
            f"the described kernel's moved {kernel['moved_pages']:,} pages in {kernel['hint_faults']:,} hint "
            f"faults; it marked memory {kernel['scans']:,} times",
        )
    yield from time_lines(counts)
    for row in counts.get("sweep", []):
        own = " (this machine's)" if row["own"] else ""
        ways = "direct-mapped" if row["ways"] == 1 else f"{row['ways']}-way"
        text = (
            f"{row['kib']:,.0f} KiB {ways}: {percent(row['remote_fraction'])} of {row['total_misses']:,}{own}"
        )
        yield "sweep", text


def time_lines(counts: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Time is a model, and says so."""
    time = counts.get("time")
    if not time:
        return
    least, most = time["relative"]
    m = (
        f"m = {time['m'][0]:.3g}"
        if time["m"][0] == time["m"][1]
        else f"m from {time['m'][0]:g} to {time['m'][1]:g}"
    )
    value = f"{least:.2f}" if least == most else f"{least:.2f} to {most:.2f}"
    how = "calibrated" if time["calibrated"] else "not calibrated: --calibrate"
    yield (
        "model time",
        f"{value} times that with all pages local: {time['model']}, R = {time['ratio']:g}, {m} ({how}); "
        f"error {time['error_text']}",
    )
    if counts["moved_pages"]:
        yield "", f"and {time['migration_seconds']:.3g} s for {counts['moved_pages']:,} pages that moved"


def cache_text(cache: dict[str, Any]) -> str:
    """The cache that a fraction is stated for."""
    ways = "direct-mapped" if cache["ways"] == 1 else f"{cache['ways']}-way"
    text = f"{cache['kib']:g} KiB {ways} a thread, lines of {cache['line']}"
    text += f", pages of {cache['page_bytes'] // 1024} KiB"
    if cache.get("shared_kib"):
        text += f", {cache['shared_kib']:g} KiB {cache['shared_ways']}-way shared by {cache['shared_cpus']}"
    return text


def percent(value: float) -> str:
    return f"{100 * value:.{0 if value >= 0.0995 else 1}f} %"
