"""Run by a kernel when it starts, where IPYTHONDIR is tests/kernel_startup: see tests/in_a_browser.py."""


def _as_in_a_browser(_: object) -> None:
    """Called before the first cell, when the kernel has started the threads that it needs for itself."""
    import os
    import random
    import runpy
    import sys
    from pathlib import Path

    from IPython import get_ipython

    get_ipython().events.unregister("pre_run_cell", _as_in_a_browser)
    here = Path(os.environ["IPYTHONDIR"])
    rules = runpy.run_path(str(here.with_name("in_a_browser.py")))
    # Where trio is installed there is no browser: its page runs it in a thread.
    random.seed(10)  # where a page draws lots, they are the same each time, as what it says is held
    rules["forbid"](lambda: "trio" not in sys.modules and rules["by_the_course"]())


get_ipython().events.register("pre_run_cell", _as_in_a_browser)  # noqa: F821 - IPython's own
