"""Loads an OpenMP library through ctypes, as Python packages do, also from a child by fork."""

import ctypes
import os
import sys

library = ctypes.CDLL(sys.argv[1])
library.library_run.restype = ctypes.c_uint64
print("main", format(library.library_run(60), "016x"), flush=True)
buffer = bytearray(1 << 20)
for _ in range(50):
    with open("/dev/zero", "rb") as file:
        file.readinto(buffer)
child = os.fork()
if child == 0:
    os._exit(17 if sum(buffer) == 0 else 18)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
sys.exit(6)
