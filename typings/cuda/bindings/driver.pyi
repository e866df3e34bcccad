# What is used of cuda.bindings.driver. Each function returns a tuple that begins with a CUresult.
from typing import Any

def __getattr__(name: str) -> Any: ...
