"""The options about our own CA, which both roles have."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import click

from certs.authority import CA_LIFE, LEAF_LIFE
from certs.rotation import Lives

_Command = TypeVar("_Command", bound=Callable[..., object])
# Go's notation, as in cert-manager's and Kubernetes' own durations.
_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?")
_SHORTEST = timedelta(seconds=10)  # the Secret is read several times in a leaf's life
# DNS subdomain names, as Kubernetes has them.
_NAME = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_OBJECT = re.compile(rf"({_NAME})/({_NAME})")
_PREFIX = "EVENSPREAD_"


class ObjectName(click.ParamType[tuple[str, str]]):
    """A namespace and a name, with a slash between them."""

    name = "name"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Read it, or refuse it as a usage error."""
        found = _OBJECT.fullmatch(str(value))
        if found is None:
            self.fail(f"{str(value)[:64]!r}: write it as NAMESPACE/NAME", param, ctx)
        return found[1], found[2]


class Duration(click.ParamType[timedelta]):
    """A duration in Go's notation: 168h, 1h30m, 45s; refused below the shortest that makes sense."""

    name = "duration"

    def __init__(self, shortest: timedelta) -> None:
        self._shortest = shortest

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Read it, or refuse it as a usage error."""
        if isinstance(value, timedelta):  # the default
            return value
        found = _DURATION.fullmatch(str(value))
        if found is None or not str(value):
            self.fail(f"{str(value)[:64]!r}: write it as 168h, 1h30m or 45s", param, ctx)
        hours, minutes, seconds = (int(part or 0) for part in found.groups())
        duration = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if duration < self._shortest:
            self.fail(f"{str(value)[:64]!r}: at least {self._shortest.total_seconds():.0f}s", param, ctx)
        return duration


def ca_options(command: _Command) -> _Command:
    """Add ``--ca-secret``, ``--ca-duration`` and ``--leaf-duration``."""
    for add in (
        click.option(
            "--leaf-duration",
            type=Duration(_SHORTEST),
            default=LEAF_LIFE,
            metavar="DURATION",
            envvar=f"{_PREFIX}LEAF_DURATION",
            show_envvar=True,
            help="How long certificates of that CA live; renewed at two thirds. [default: 168h]",
        ),
        click.option(
            "--ca-duration",
            type=Duration(_SHORTEST),
            default=CA_LIFE,
            metavar="DURATION",
            envvar=f"{_PREFIX}CA_DURATION",
            show_envvar=True,
            help="How long a new CA lives; the controller replaces it at two thirds. [default: 8760h]",
        ),
        click.option(
            "--ca-secret",
            type=ObjectName(),
            metavar="NAMESPACE/NAME",
            envvar=f"{_PREFIX}CA_SECRET",
            show_envvar=True,
            help="The cluster's Secret with the CA; filled if it is empty.",
        ),
    ):
        command = add(command)
    return command


def lives(ca_duration: timedelta, leaf_duration: timedelta) -> Lives:
    """What the two options come to.

    Errors: click.UsageError where a CA would not outlive the change to the next one.
    """
    if ca_duration < 3 * leaf_duration:
        raise click.UsageError("--ca-duration is less than three times --leaf-duration")
    return Lives(authority=ca_duration, leaf=leaf_duration)
