"""The estimate of a run's remote share, at both ends of what homing did, with its interval.

What is estimated: of the touches of pages that the run made, the share that came from another node than the
page's, (a) with every page where it was before homing moved any, (b) with every page where it is at the end.
Both ends are read off the same touches with the same weights (src/areas/remote_share.hpp), so they
differ by what moved and by nothing else; where nothing moved, they are one number. It is a share of touches,
not of cache misses: what fits into caches is touched, too, and `--on lab --count` or a described machine
count misses.

Areas are strata of a survey, weighted by their traffic, and a granule of an area (a page) is a cluster of
touches, which stands for the granules up to half-way to the next ones in the sample. With L(a) the weight of
area a (their sum is 1), p(a) its weighted mean, n(a) = (sum w)^2 / sum w^2 the number of equal granules that
its sample is worth (Kish 1965, section 11.7):

    share     p = sum L(a) p(a)
    variance  V = sum L(a)^2 s(a)^2 / n(a)

s(a)^2 is the variance between the area's granules (with G - 1 degrees of freedom, G granules), joined with
z^2 more degrees whose variance is that of a binomial of the whole run's share: of an area with one granule
nothing is known but that. The interval is Wilson's score interval (Wilson 1927) on the effective number of
samples p (1 - p) / V (Korn and Graubard 1998; compared with others by Dean and Pagano 2015). Where fewer than
five effective samples are of one kind, p (1 - p) is taken at the interval's centre and the number is no more
than Kish's. In simulated programs the interval holds the truth in 95 % of the runs or more
(tests/python/test_remote.py).
"""

from __future__ import annotations

import math

from homing.record_rows import AreaSample, EndSums
from homing.report.words import percent
from homing.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Of the intervals, so many hold the truth.
CONFIDENCE = 0.95
#: The normal quantile that goes with it.
Z = 1.959963984540054
#: Fewer effective samples give no estimate: the interval would be wider than 40 per cent.
LEAST_SAMPLES = 20
_LEAST_EVENTS = 5


@dataclass(frozen=True)
class Share:
    """An estimated fraction, and the interval that holds the true one with CONFIDENCE."""

    fraction: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """The remote share of the same touches with pages where they were, and where they are. granules: pages
    (or huge pages) that were sampled; touches: that were seen of them; effective: equal and independent
    samples that these are worth, at the end that has fewer."""

    before: Share
    after: Share
    granules: int
    touches: float
    effective: float

    @property
    def changed(self) -> bool:
        """Are the ends two numbers as they are shown? They are one where sampled pages, moved or not, ended
        as far away as they began."""
        return percent(self.before.fraction) != percent(self.after.fraction)

    @property
    def enough(self) -> bool:
        """Is it enough to say anything?"""
        return self.effective >= LEAST_SAMPLES


def estimate(samples: Sequence[AreaSample]) -> Estimate | None:
    """The estimate over areas; None where nothing was sampled."""
    traffic = math.fsum(one.traffic for one in samples)
    if not samples or traffic <= 0:
        return None
    shares = [one.traffic / traffic for one in samples]
    before, effective_before = _end(samples, shares, lambda one: one.before)
    after, effective_after = _end(samples, shares, lambda one: one.after)
    return Estimate(
        before,
        after,
        sum(one.granules for one in samples),
        math.fsum(one.touches for one in samples),
        min(effective_before, effective_after),
    )


def _end(
    samples: Sequence[AreaSample], shares: Sequence[float], end: Callable[[AreaSample], EndSums]
) -> tuple[Share, float]:
    """One end's share with its interval, and the effective number of samples."""
    means = [min(1.0, end(one).share / one.weight) for one in samples]
    equal = [one.weight**2 / one.weight2 for one in samples]
    fraction = min(1.0, math.fsum(share * mean for share, mean in zip(shares, means, strict=True)))
    kish = 1 / math.fsum(share**2 / number for share, number in zip(shares, equal, strict=True))
    centre = (kish * fraction + Z**2 / 2) / (kish + Z**2)
    binomial = centre * (1 - centre)
    terms = []
    for one, share, mean, number in zip(samples, shares, means, equal, strict=True):
        sums = end(one)
        squares = max(0.0, sums.share2 - 2 * mean * sums.share1 + mean**2 * one.weight2)
        spread = squares / one.weight2 * one.granules  # (G - 1) times the variance between granules
        variance = (spread + Z**2 * binomial) / (one.granules - 1 + Z**2)
        terms.append(share**2 * variance / number)
    variance = math.fsum(terms)
    events = kish * min(fraction, 1 - fraction)
    if events < _LEAST_EVENTS:
        effective = min(binomial / variance, kish)
    else:
        effective = fraction * (1 - fraction) / variance
    return wilson(fraction, effective), effective


def wilson(fraction: float, number: float) -> Share:
    """Wilson's score interval of a fraction of `number` samples (Wilson 1927)."""
    centre = (fraction + Z**2 / (2 * number)) / (1 + Z**2 / number)
    half = Z / (1 + Z**2 / number) * math.sqrt(fraction * (1 - fraction) / number + (Z / (2 * number)) ** 2)
    return Share(fraction, max(0.0, min(fraction, centre - half)), min(1.0, max(fraction, centre + half)))
