"""`homing translate`: programs with data-distribution directives, rewritten source to source."""
