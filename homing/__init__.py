"""homing sends the memory pages of OpenMP programs to the NUMA nodes whose threads use them."""

__version__ = "0.2.0"
