"""What ``check`` changes in manifests instead of printing findings: ``--fix``, ``--add-defaults``, ``--write``."""

from collections.abc import Iterable, Sequence

import click

from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.core.policy.policy import DefaultsMode, Policy
from webhook.core.rules.frame.rule import Severity
from webhook.core.scheduler.profile import DefaultingType
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import STDIN, File

ALL = "all"  # of --fix: findings of every severity


def check_usage(  # noqa: PLR0913 one parameter an option
    paths: Sequence[str], policy: Policy, *, fix: str | None, add_defaults: bool, write: bool, output: str
) -> None:
    """Refuse combinations of options that make no sense. Errors: click.UsageError."""
    if fix and add_defaults:
        raise click.UsageError("--fix and --add-defaults may change the same lines: one first, then the other")
    if not fix and not add_defaults:
        raise click.UsageError("--write writes what --fix or --add-defaults shows: give one of them too")
    if output != "text":
        option = "--fix" if fix else "--add-defaults"
        raise click.UsageError(f"-o is for findings, which {option} does not print")
    if write and STDIN in paths:
        raise click.UsageError("the standard input cannot be written to; without --write the changes are printed")
    defaults = policy.defaults
    given = defaults.defaulting_type == DefaultingType.SYSTEM or defaults.default_constraints or defaults.overrides
    if add_defaults and (defaults.mode == DefaultsMode.OFF or not given):
        raise click.UsageError(
            "--add-defaults needs a configuration with defaults: --config FILE, with defaults.defaultConstraints in it "
            "and a defaults.mode that is not off"
        )


def make(files: Iterable[File | InputFault], frame: Frame, *, fix: str | None, write: bool, fail_on: str) -> Exit:
    """Print the changes as a diff, or write them."""
    if fix:
        from webhook.cli.commands.check.fix import fix_files  # noqa: PLC0415 each alone is quicker to load

        lowest = Severity.LOW if fix == ALL else Severity.MEDIUM
        return fix_files(files, frame, lowest=lowest, write=write, fail_on=fail_on)
    from webhook.cli.commands.check.add_defaults import add_defaults  # noqa: PLC0415 as above

    return add_defaults(files, frame, write=write)
