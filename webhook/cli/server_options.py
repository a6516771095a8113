"""Options of both servers, webhook and controller."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import click

from certs.authority import CA_LIFE, LEAF_LIFE
from certs.rotation import Lifetimes
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.parameters import OBJECT_NAME, duration
from webhook.cluster.connection import ApiServer
from webhook.cluster.credentials import Account
from webhook.cluster.errors import ClusterError
from webhook.config import ConfigError, Loaded, load_policy

_Command = TypeVar("_Command", bound=Callable[..., object])
_SHORTEST = timedelta(seconds=10)  # the servers read the Secret several times in a leaf's life
_LAST_PORT = 65535  # of TCP
_MIN_LEAVES = 3  # lifetimes in a CA's: time to distribute the next CA before leaves use it


def option(name: str, **settings: object) -> Callable[[_Command], _Command]:
    """An option that can also be set in the environment: ``--drain-seconds`` as EVENSPREAD_DRAIN_SECONDS."""
    variable = f"EVENSPREAD_{name.partition('/')[0].lstrip('-').replace('-', '_').upper()}"
    return click.option(name, envvar=variable, show_envvar=True, **settings)  # type: ignore[arg-type]  # click's own kwargs


def ca_options(command: _Command) -> _Command:
    """Add ``--ca-secret``, ``--ca-duration`` and ``--leaf-duration``."""
    for add in (
        option(
            "--leaf-duration",
            type=duration(_SHORTEST),
            default=LEAF_LIFE,
            metavar="DURATION",
            help="Lifetime of certificates from evenspread's CA. Renewed after two thirds. [default: 168h]",
        ),
        option(
            "--ca-duration",
            type=duration(_SHORTEST),
            default=CA_LIFE,
            metavar="DURATION",
            help="Lifetime of a new CA. The controller replaces it after two thirds. [default: 8760h]",
        ),
        option(
            "--ca-secret",
            type=OBJECT_NAME,
            metavar="NAMESPACE/NAME",
            help="Secret with the CA. If it is empty, a CA is created.",
        ),
    ):
        command = add(command)
    return command


def lifetimes(ca_duration: timedelta, leaf_duration: timedelta) -> Lifetimes:
    """The lifetimes of --ca-duration and --leaf-duration.

    Raises click.UsageError if the CA could expire while certificates of it are still in use.
    """
    if ca_duration < _MIN_LEAVES * leaf_duration:
        raise click.UsageError("--ca-duration must be at least three times --leaf-duration")
    return Lifetimes(authority=ca_duration, leaf=leaf_duration)


def address(flag: str, text: str, example: str) -> tuple[str, int]:
    """Parse HOST:PORT. Raises CommandError if the text is something else."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise CommandError(f"{flag} {text}: write it as HOST:PORT, for example {example}")
    return host.strip("[]"), int(port)


def api_server(kubeconfig: str | None, context: str | None) -> ApiServer:
    """The API server in a kubeconfig, or the API server of this pod. Raises CommandError with exit code 4."""
    try:
        return ApiServer(Account(kubeconfig=kubeconfig, context=context))
    except ClusterError as error:
        raise CommandError(str(error), Exit.CLUSTER) from error


def loaded_policy(file: str) -> Loaded:
    """Read the policy file of a server. Raises CommandError if the file has faults."""
    try:
        return load_policy(file)
    except ConfigError as error:
        raise CommandError(f"the configuration is invalid\n{error.render()}") from error
