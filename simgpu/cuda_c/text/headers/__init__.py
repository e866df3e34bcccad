"""Files of CUDA C that go in front of a kernel: standard names, and headers of NVIDIA's."""

from functools import cache
from importlib.resources import files


@cache
def header_text(header: str) -> str:
    """The text of a file of this folder."""
    return files(__name__).joinpath(header).read_text(encoding="utf-8")
