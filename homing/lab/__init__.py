"""The lab: a Linux guest with several NUMA nodes on any machine, and a counter of its remote cache misses."""
