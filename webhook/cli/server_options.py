"""What the options of the two servers, webhook and controller, have in common."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import click

from certs.authority import CA_LIFE, LEAF_LIFE
from certs.rotation import Lifetimes
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.parameters import OBJECT_NAME, duration
from webhook.cluster.connection import Account, ApiServer, ClusterError
from webhook.config import ConfigError, Loaded, load_policy

_Command = TypeVar("_Command", bound=Callable[..., object])
_SHORTEST = timedelta(seconds=10)  # the Secret is read several times in a leaf's life
_LAST_PORT = 65535  # TCP has 16 bits for it


def option(name: str, **settings: object) -> Callable[[_Command], _Command]:
    """An option that can stand in the environment too: ``--drain-seconds`` as EVENSPREAD_DRAIN_SECONDS."""
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
            help="Lifetime of certificates of that CA. Renewed after two thirds. [default: 168h]",
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
            help="The cluster's Secret with the CA. Filled if empty.",
        ),
    ):
        command = add(command)
    return command


def lives(ca_duration: timedelta, leaf_duration: timedelta) -> Lifetimes:
    """What the two options come to.

    Errors: click.UsageError where a CA would not outlive the change to the next one.
    """
    if ca_duration < 3 * leaf_duration:
        raise click.UsageError("--ca-duration is less than three times --leaf-duration")
    return Lifetimes(authority=ca_duration, leaf=leaf_duration)


def address(flag: str, text: str, example: str) -> tuple[str, int]:
    """Read HOST:PORT. Errors: CommandError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise CommandError(f"{flag} {text}: write it as HOST:PORT, as in {example}")
    return host.strip("[]"), int(port)


def api_server(kubeconfig: str | None, context: str | None) -> ApiServer:
    """The API server of a kubeconfig, or of the cluster around this pod. Errors: CommandError with exit code 4."""
    try:
        return ApiServer(Account(kubeconfig=kubeconfig, context=context))
    except ClusterError as error:
        raise CommandError(str(error), Exit.CLUSTER) from error


def loaded_policy(file: str) -> Loaded:
    """The policy of a file that is followed. Errors: CommandError for a file that has faults."""
    try:
        return load_policy(file)
    except ConfigError as error:
        raise CommandError(f"the configuration cannot be used\n{error.render()}") from error
