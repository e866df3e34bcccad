"""Tools for the checks of the chapters.

::

    results        the numbers that it computes
    schedule       the trace of its run: which stream, in which order, who waits
    trials         factories for checks: the cases as a table, and what must be right in each
    building       that describing an operation runs nothing
    operations     operations and arrays to try it on
    interleavings  every order of a few threads' steps
"""
