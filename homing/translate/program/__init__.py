"""A program of which a build compiles one file at a time."""
