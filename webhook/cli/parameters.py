"""Parameter types of commands: durations, object names and Kubernetes releases."""

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TypeVar, cast

import click

from webhook.core.api.version import parse_version

_Value = TypeVar("_Value")
# Go's notation, as in Kubernetes and cert-manager.
_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?")
# DNS subdomain names, as in Kubernetes.
_NAME = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_OBJECT = re.compile(rf"({_NAME})/({_NAME})")


class Parsed(click.ParamType[_Value]):
    """A parameter type with a parser. The parser's ValueError becomes a usage error."""

    def __init__(self, name: str, read: Callable[[str], _Value]) -> None:
        self.name, self._read = name, read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> _Value:
        """Parse the value. Anything invalid is a usage error."""
        if not isinstance(value, str):  # the default
            return cast("_Value", value)
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _object_name(text: str) -> tuple[str, str]:
    match = _OBJECT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:64]!r}: write it as NAMESPACE/NAME")
    return match[1], match[2]


def _duration(text: str, shortest: timedelta) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        raise ValueError(f"{text[:64]!r}: write it as 168h, 1h30m or 45s")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    parsed = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if parsed < shortest:
        raise ValueError(f"{text[:64]!r}: the minimum is {shortest.total_seconds():.0f}s")
    return parsed


def duration(shortest: timedelta) -> Parsed[timedelta]:
    """The parameter type of durations like 168h, 1h30m or 45s, with a minimum."""
    return Parsed("duration", partial(_duration, shortest=shortest))


OBJECT_NAME = Parsed("name", _object_name)
VERSION = Parsed("version", parse_version)
