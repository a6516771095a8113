"""``evenspread COMMAND`` and ``kubectl evenspread COMMAND``: the entrance, and the one place where errors end.

Commands are imported only when they are run, so that each imports no more than it needs.
"""

import errno
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.extras import lacking
from webhook.core.text import did_you_mean

_COMMANDS: Mapping[str, str] = {
    "check": "webhook.cli.commands.check.command",
    "audit": "webhook.cli.commands.audit.command",
    "snapshot": "webhook.cli.commands.snapshot",
    "explain": "webhook.cli.commands.explain.command",
    "simulate": "webhook.cli.commands.simulate.command",
    "skew": "webhook.cli.commands.skew",
    "plan": "webhook.cli.commands.plan.command",
    "doctor": "webhook.cli.commands.doctor.command",
    "test": "webhook.cli.commands.test",
    "webhook": "webhook.cli.commands.webhook.command",
    "controller": "webhook.cli.commands.controller",
    "conformance": "webhook.cli.commands.conformance",
    "completion": "webhook.cli.completion",
    "version": "webhook.cli.commands.version",
}


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # the user's disk is full: no fault of evenspread


class _Commands(click.Group):
    """The table above as a group of commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 click's signature
        return [*_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 click's signature
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return None
        try:
            command = getattr(importlib.import_module(module), cmd_name)
        except ModuleNotFoundError as error:
            return _without_extra(cmd_name, error)
        if not isinstance(command, click.Command):
            raise TypeError(module)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            hint = did_you_mean(args[0], _COMMANDS).removeprefix("; ").capitalize()
            if not hint:
                raise
            raise click.UsageError(f"{error.message} {hint}", ctx) from None


def _without_extra(name: str, error: ModuleNotFoundError) -> click.Command:
    """A command in the list that can only say what it lacks."""
    stopped = lacking(error)
    if stopped is None:
        raise error

    def stop() -> None:
        raise stopped

    anything = {"ignore_unknown_options": True, "help_option_names": []}
    rest = click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED, expose_value=False)
    return click.Command(name, context_settings=anything, params=[rest], callback=stop, short_help=f"({stopped})")


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="evenspread", prog_name="evenspread", message="%(prog)s %(version)s")
def evenspread() -> None:
    """Say what Kubernetes will make of topologySpreadConstraints, before it does."""


def run() -> None:
    """Run the command line; the console script."""
    _import_msgspec()
    sys.exit(main(sys.argv[1:]))


def _import_msgspec() -> None:
    """Import msgspec without typing_extensions, which is an eighth of the start of a short command.

    msgspec takes it where it is there, but from Python 3.11 on `typing` has all that it needs of it.
    """
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # makes the import fail
    try:
        importlib.import_module("msgspec")
    finally:
        del sys.modules["typing_extensions"]


def main(arguments: list[str]) -> int:
    """Run one command line.

    Errors: none; whatever goes wrong is a line on the standard error and an exit code.
    """
    # A name in the input may hold what the terminal's encoding cannot show.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    called = Path(sys.argv[0]).name
    name = "kubectl evenspread" if called.startswith("kubectl") else "evenspread"
    return exit_code_of(lambda: evenspread.main(arguments, prog_name=name, standalone_mode=False))


def exit_code_of(command: Callable[[], object]) -> int:
    """Run a command; returns its exit code, whatever happens."""
    try:
        result = command()
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except CommandError as stopped:
        return _stop(stopped)
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Whoever read the results has seen enough. Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FINE
    except Exception as error:  # noqa: BLE001 the one boundary: a traceback helps nobody at a terminal
        return _our_fault(error)
    return result if isinstance(result, int) else Exit.FINE


def _stop(stopped: CommandError) -> int:
    from webhook.cli.terminal import say  # noqa: PLC0415 most commands end otherwise

    say(f"evenspread: {stopped}")
    return stopped.code


def _our_fault(error: Exception) -> int:
    lacks = lacking(error) if isinstance(error, ModuleNotFoundError) else None
    if lacks is not None:
        return _stop(lacks)
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        click.echo(f"evenspread: the results could not be written: {error.strerror}", err=True)
        return Exit.OUR_FAULT
    if os.environ.get("EVENSPREAD_DEBUG"):
        raise error
    what = f"{type(error).__name__}: {str(error).splitlines()[0][:256] if str(error) else ''}"
    click.echo(
        f"evenspread: a fault of evenspread itself, please report it ({what}); EVENSPREAD_DEBUG=1 shows where", err=True
    )
    return Exit.OUR_FAULT
