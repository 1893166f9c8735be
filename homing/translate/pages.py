"""stub"""
from __future__ import annotations
def translate_pages(units, distributions, edits): return [], []
