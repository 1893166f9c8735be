"""--to upm: the calls of UPMlib, as its compiler inserts them (Nikolopoulos et al. 2000, sections 2.1 and
2.2)."""
