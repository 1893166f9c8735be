"""Simulated ccNUMA machines: `homing cc`, `homing machine`, `homing run --on MACHINE`."""
