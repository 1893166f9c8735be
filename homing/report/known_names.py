"""What earlier runs of the same build found in its debug information: reading it again takes longer than all
the rest of a summary. One file of homing's cache for each program (the last build of it); an answer counts
where its object's identity (docs/record.md) is that of the record."""

from __future__ import annotations

from homing.channel import fnv_hash
from homing.light import loads
from homing.paths import Cache
from homing.record_format import printable
from homing.report import statements
from homing.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from homing.records import Record

#: JSON by object, what and offset (homing/report/sources.py).
Found = dict[tuple[str, int, int], str]
#: Another one where statements.variables() answers otherwise, too, or functions have other names.
_VERSION = 3
#: More is not worth reading for every summary.
_MOST = 5_000


@dataclass
class KnownNames:
    """Those of one record's program."""

    cache: Cache
    name: str
    identities: dict[str, str]
    found: Found
    #: What statements.variables() made of the statements of this build.
    parsed: dict[tuple[str, str], list[str]]

    @classmethod
    def of(cls, record: Record) -> KnownNames:
        """What is kept for this record's objects."""
        cache = Cache("names", quiet=True)
        name = f"{fnv_hash(record.program.encode('utf-8', 'replace')):016x}.json"
        identities = {path: one for path, one in record.objects.items() if one}
        found: Found = {}
        parsed: dict[tuple[str, str], list[str]] = {}
        try:
            version, objects, entries, lists = loads(cache.read(name) or b"[0, {}, [], []]")
            if version == _VERSION:
                same = {path for path, one in objects.items() if identities.get(path) == one}
                found = {(path, what, at): text for path, what, at, text in entries if path in same}
                if objects == identities:  # statements of earlier builds would add up
                    parsed = {
                        (text, call): [printable(str(one)) for one in names] for text, call, names in lists
                    }
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass  # damaged: as if nothing were kept
        statements.parsed.update(parsed)
        return cls(cache, name, identities, found, parsed)

    def keep(self, found: Found) -> None:
        """Keep what was found now, with what was known."""
        new = {key: text for key, text in found.items() if key[0] in self.identities}
        known = new.items() <= self.found.items() and statements.parsed.keys() <= self.parsed.keys()
        if not self.cache.folder or known:
            return
        both = list({**new, **self.found}.items())[:_MOST]
        lists = [[*key, names] for key, names in list(statements.parsed.items())[:_MOST]]
        data = [_VERSION, self.identities, [[*key, text] for key, text in both], lists]
        import json  # most summaries write none

        self.cache.write(self.name, json.dumps(data, separators=(",", ":")).encode())
