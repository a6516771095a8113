"""Terminal colours: the codes, and whether the output may have them."""

import os
from typing import TextIO

# SGR codes of ECMA-48.
BOLD, DIM, RED, YELLOW, BLUE, GREEN = "1", "2", "31", "33", "34", "32"


class Paint:
    """Colour text, or return it unchanged if ``color`` is false."""

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def __call__(self, text: str, *codes: str) -> str:
        """Return the text in these ANSI codes, or unchanged without colour."""
        return f"\033[{';'.join(codes)}m{text}\033[0m" if self._color and text else text


def has_color(stream: TextIO) -> bool:
    """Whether a stream is a colour terminal. NO_COLOR turns colours off (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
