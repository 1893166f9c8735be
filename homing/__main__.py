"""`python -m homing` is the command `homing`."""

from homing.cli import command

command()
