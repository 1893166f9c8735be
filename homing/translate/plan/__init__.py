"""What a translation does, as frozen objects: made once, read by the targets, printed by --explain."""
