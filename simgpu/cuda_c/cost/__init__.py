"""What a kernel costs: charges for its code (`walk`), and counts, such as of bank conflicts (`tally`).

The prices of C's operators are in `operator_prices`, those of functions in the tables of `compile/builtins`.
How long lanes wait for each other at an atomic is no price: `tally` counts it, and a model makes time of it.
"""
