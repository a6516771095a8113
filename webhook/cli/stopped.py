"""A start that cannot be."""

_USAGE = 2


class Stopped(Exception):  # noqa: N818 not an error of the program but its end
    """One clear line, and the exit code (usage or configuration, unless another is given)."""

    def __init__(self, message: str, code: int = _USAGE) -> None:
        super().__init__(message)
        self.code = code
