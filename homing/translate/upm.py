"""stub"""
from __future__ import annotations
def translate_upm(units, edits, phases): raise NotImplementedError
