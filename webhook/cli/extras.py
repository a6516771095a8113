"""The extras of the distribution: what an installation lacks that came without one, and how to get it."""

from collections.abc import Mapping
from typing import NamedTuple

from webhook.cli.exit_codes import CommandError


class _Extra(NamedTuple):
    name: str
    purpose: str


_CLUSTER = _Extra("cluster", "to read a cluster")
_WEBHOOK = _Extra("webhook", "to serve and to judge certificates")
# By the module whose import fails.
_BROUGHT_BY: Mapping[str, _Extra] = {
    "kubernetes": _CLUSTER,
    "urllib3": _CLUSTER,
    "cryptography": _WEBHOOK,
    "flask": _WEBHOOK,
    "gunicorn": _WEBHOOK,
    "jinja2": _WEBHOOK,
    "prometheus_client": _WEBHOOK,
    "uvloop": _WEBHOOK,
}


def lacking(error: ModuleNotFoundError) -> CommandError | None:
    """What to say where a failed import is an extra that is not installed; None for any other module."""
    module = (error.name or "").partition(".")[0]
    extra = _BROUGHT_BY.get(module)
    if extra is None:
        return None
    return CommandError(
        f"{extra.purpose} evenspread needs {module}, which is not installed; pip install 'evenspread[{extra.name}]'"
    )
