"""Fronts: source text in, the tree of homing.translate.tree out."""
