from collections.abc import Callable
from signal import SIGINT as SIGINT
from signal import default_int_handler as default_int_handler
from signal import raise_signal as raise_signal
from types import FrameType

def getsignal(signalnum: int, /) -> Callable[[int, FrameType | None], object] | int | None: ...
def signal(
    signalnum: int, handler: Callable[[int, FrameType | None], object] | int, /
) -> object: ...
