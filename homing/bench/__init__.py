"""homing bench (being written)."""
