"""Targets: what is done with each array, loop and piece of serial code. Plans in, calls of a writer out."""
