"""Small questions about references."""

from __future__ import annotations

from homing.translate.tree import Reference, Subscript


def reference_subscripts(reference: Reference) -> list[Subscript]:
    """The subscripts of a reference that is known to have some."""
    assert reference.subscripts is not None
    return reference.subscripts
