"""The cost of a kernel: charges for its code (`walk`), and counts, such as bank conflicts (`tally`).

The prices of C's operators are in `values`, those of functions in the tables of `compile/builtins`.
The time for which lanes wait for each other at an atomic is no price: `tally` counts the lanes, and a model
turns the count into time.
"""
