"""The kernel: what a candidate goes through. Pure: no I/O, no clock."""
