"""What the summary calls a parallel region: the function that it is in, and its line."""

from __future__ import annotations

import os

from homing.record_rows import Region
from homing.records import Record
from homing.report.symbols import readable_symbol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from homing.report.names import Namer


def region_names(record: Record, namer: Namer) -> dict[int, str]:
    """Of the regions that the summary tells of: those of phases, and those that use an area in their own way.
    Looking up lines takes time."""
    told = {one.region for one in record.phases}
    told |= {way.region for ways in record.place_distributions.values() for way in ways}
    return {region.id: _name(region, namer) for region in record.regions if region.id in told}


def _name(region: Region, namer: Namer) -> str:
    """Compilers make a function of a region, whose symbol only the files of the program have; the first
    instruction of it is of the line that begins the region."""
    place = namer.place(region.object, region.offset + 1)
    if place is not None and place.line:
        at = f"{os.path.basename(place.file)}:{place.line}"
        return f"{place.function} ({at})" if place.function else at
    if region.symbol:
        return readable_symbol(region.symbol)
    if place is not None and place.function:
        return place.function
    return f"{os.path.basename(region.object)}+0x{region.offset:x}"
