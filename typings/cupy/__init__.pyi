# CuPy ships no types, and is not installed on most machines that check this package.
# Everything in it is Any, in this one place, rather than by ignores where it is used.
from typing import Any

def __getattr__(name: str) -> Any: ...
