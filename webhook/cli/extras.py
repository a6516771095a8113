"""The optional dependencies of the distribution, and the error about a missing one."""

from collections.abc import Mapping
from typing import NamedTuple

from webhook.cli.exit_codes import CommandError


class _Extra(NamedTuple):
    name: str
    purpose: str  # with the verb


_CLUSTER = _Extra("cluster", "reading a cluster needs")
_WEBHOOK = _Extra("webhook", "the servers and doctor need")
_LSP = _Extra("lsp", "the language server needs")
_EXTRA_OF_MODULE: Mapping[str, _Extra] = {
    "kubernetes": _CLUSTER,
    "urllib3": _CLUSTER,
    "lsprotocol": _LSP,
    "pygls": _LSP,
    "cryptography": _WEBHOOK,
    "flask": _WEBHOOK,
    "gunicorn": _WEBHOOK,
    "jinja2": _WEBHOOK,
    "prometheus_client": _WEBHOOK,
    "uvloop": _WEBHOOK,
}


def missing_extra(error: ModuleNotFoundError) -> CommandError | None:
    """The error if the failed import belongs to an extra. None for any other module."""
    module = (error.name or "").partition(".")[0]
    extra = _EXTRA_OF_MODULE.get(module)
    if extra is None:
        return None
    return CommandError(
        f"{extra.purpose} the package {module}, which is not installed: pip install 'evenspread[{extra.name}]'"
    )
