"""The entry point of ``evenspread COMMAND`` and ``kubectl evenspread COMMAND``, and the handler of all errors.

A command is imported when it runs, so that it loads only its own dependencies.
"""

import errno
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from webhook.cli.exit_codes import CommandError, Exit
from webhook.core.spelling import did_you_mean

_COMMANDS: Mapping[str, str] = {
    "check": "webhook.cli.commands.check.command",
    "lsp": "webhook.cli.commands.lsp.command",
    "audit": "webhook.cli.commands.audit.command",
    "snapshot": "webhook.cli.commands.snapshot",
    "explain": "webhook.cli.commands.explain.command",
    "simulate": "webhook.cli.commands.simulate.command",
    "skew": "webhook.cli.commands.skew.command",
    "plan": "webhook.cli.commands.plan.command",
    "rule": "webhook.cli.commands.rule",
    "compile": "webhook.cli.commands.compile",
    "doctor": "webhook.cli.commands.doctor.command",
    "test": "webhook.cli.commands.test",
    "webhook": "webhook.cli.commands.webhook.command",
    "controller": "webhook.cli.commands.controller",
    "conformance": "webhook.cli.commands.conformance",
    "completion": "webhook.cli.completion",
    "version": "webhook.cli.commands.version",
}

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_MAX_ERROR_CHARS = 256  # three lines of a usual terminal


# The extras of the distribution, each with its purpose.
_CLUSTER = ("cluster", "reading a cluster needs")
_WEBHOOK = ("webhook", "the servers and doctor need")
_LSP = ("lsp", "the language server needs")
_EXTRA_OF_MODULE: Mapping[str, tuple[str, str]] = {
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


class _Commands(click.Group):
    """The commands in the table."""

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
    """Return a placeholder for a command. When run, the placeholder reports the missing extra of the distribution."""
    missing = _missing_extra(error)
    if missing is None:
        raise error

    def stop() -> None:
        raise missing

    settings = {"ignore_unknown_options": True, "help_option_names": []}
    rest = click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED, expose_value=False)
    return click.Command(name, context_settings=settings, params=[rest], callback=stop, short_help=f"({missing})")


def _missing_extra(error: ModuleNotFoundError) -> CommandError | None:
    """The error if the failed import belongs to an extra. None for any other module."""
    module = (error.name or "").partition(".")[0]
    if module not in _EXTRA_OF_MODULE:
        return None
    name, purpose = _EXTRA_OF_MODULE[module]
    return CommandError(f"{purpose} the package {module}, which is not installed: pip install 'evenspread[{name}]'")


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="""Find faults in topologySpreadConstraints before Kubernetes does, and explain Pending pods.

\b
  evenspread check manifests/            check manifests
  evenspread audit --cluster             check a cluster
  evenspread explain deployment/web      find out why a pod is Pending
  evenspread simulate web.yaml           check whether all replicas fit

No command changes a cluster, except the two servers. doctor, explain, plan, simulate, skew and snapshot read the
kubeconfig's current cluster unless you select another or add --snapshot.""",
)
@click.version_option(package_name="evenspread", prog_name="evenspread", message="%(prog)s %(version)s")
def evenspread() -> None:
    """Run a command of evenspread."""


def run() -> None:
    """Run the command line. This is the console script."""
    _import_msgspec()
    sys.exit(main(sys.argv[1:]))


def _import_msgspec() -> None:
    """Import msgspec without typing_extensions, which takes an eighth of a short command's start."""
    if "typing_extensions" in sys.modules:
        return
    # This makes the import fail. From Python 3.11, `typing` has everything that msgspec needs.
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        importlib.import_module("msgspec")
    finally:
        del sys.modules["typing_extensions"]


def main(arguments: list[str]) -> int:
    """Run a command line and return its exit code. Errors become a line on stderr."""
    # Names in the input may contain characters outside the terminal's encoding.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    called = Path(sys.argv[0]).name
    name = "kubectl evenspread" if called.startswith("kubectl") else "evenspread"
    return exit_code_of(lambda: evenspread.main(arguments, prog_name=name, standalone_mode=False))


def exit_code_of(command: Callable[[], object]) -> int:
    """Run a command and return its exit code. Never raises, except with EVENSPREAD_DEBUG."""
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
        # The reader closed the pipe. Without this, Python would report it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FINE
    except Exception as error:  # noqa: BLE001 a line instead of a traceback
        return _report_bug(error)
    return result if isinstance(result, int) else Exit.FINE


def _stop(stopped: CommandError) -> int:
    from webhook.cli.output.terminal import print_message  # noqa: PLC0415 only needed for errors

    print_message(f"evenspread: {stopped}")
    return stopped.code


def _report_bug(error: Exception) -> int:
    missing = _missing_extra(error) if isinstance(error, ModuleNotFoundError) else None
    if missing is not None:
        return _stop(missing)
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        click.echo(f"evenspread: the results could not be written: {error.strerror}", err=True)
        return Exit.OUR_FAULT
    if os.environ.get("EVENSPREAD_DEBUG"):
        raise error
    text = f"{type(error).__name__}: {str(error).splitlines()[0][:_MAX_ERROR_CHARS] if str(error) else ''}"
    click.echo(f"evenspread: a bug in evenspread, please report it ({text}); EVENSPREAD_DEBUG=1 shows where", err=True)
    return Exit.OUR_FAULT
