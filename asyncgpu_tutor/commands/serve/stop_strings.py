"""Stop strings: texts at which an answer ends, and which it doesn't have any more.

A client that hears a text token by token can't be told to forget some of it, and a stop string may begin in
one token and end three later. So whatever may become one is held back until it has, or can't any more.
"""

from collections.abc import Sequence


class StopStrings:
    """What can be told of a text while it's being said."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self.met = False  # whether one of them was said, and the text is over
        self._held: str = ""  # the end of what was said, with which a stop string may begin

    def tell(self, text: str) -> str:
        """More was said: the part of it, and of what was held back, that is no stop string by now."""
        text = self._held + text
        found = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.met, self._held = True, ""
            return text[: min(found)]
        begun = [
            size
            for stop in self._stops
            for size in range(1, min(len(stop), len(text) + 1))
            if text.endswith(stop[:size])
        ]
        sure = len(text) - max(begun, default=0)
        self._held = text[sure:]
        return text[:sure]

    def rest(self) -> str:
        """The part that was held back, now that nothing follows that could make it a stop string."""
        held, self._held = self._held, ""
        return held
