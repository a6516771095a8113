"""Parameters of commands with a syntax of their own."""

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TypeVar, cast

import click

from webhook.core.api.version import parse_version

_Value = TypeVar("_Value")
# Go's notation, as in cert-manager's and Kubernetes' own durations.
_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?")
# DNS subdomain names, as Kubernetes has them.
_NAME = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_OBJECT = re.compile(rf"({_NAME})/({_NAME})")


class Parsed(click.ParamType[_Value]):
    """A parameter that a function reads; the text of its ValueError is a usage error."""

    def __init__(self, name: str, read: Callable[[str], _Value]) -> None:
        self.name, self._read = name, read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> _Value:
        """Read it, or refuse it as a usage error."""
        if not isinstance(value, str):  # the default
            return cast("_Value", value)
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _object_name(text: str) -> tuple[str, str]:
    found = _OBJECT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:64]!r}: write it as NAMESPACE/NAME")
    return found[1], found[2]


def _duration(text: str, shortest: timedelta) -> timedelta:
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        raise ValueError(f"{text[:64]!r}: write it as 168h, 1h30m or 45s")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    read = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if read < shortest:
        raise ValueError(f"{text[:64]!r}: at least {shortest.total_seconds():.0f}s")
    return read


def duration(shortest: timedelta) -> Parsed[timedelta]:
    """A duration in Go's notation: 168h, 1h30m, 45s; refused below the shortest that makes sense."""
    return Parsed("duration", partial(_duration, shortest=shortest))


OBJECT_NAME = Parsed("name", _object_name)
VERSION = Parsed("version", parse_version)
