"""Options that several commands have, and what they turn into."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import click
from click.shell_completion import CompletionItem
from msgspec import structs

from webhook.cli.exits import Exit
from webhook.cli.formats import FORMATS
from webhook.cli.looking import Frame
from webhook.core.policy import Mode, Policy
from webhook.core.rules import BY_ID
from webhook.core.version import NEWEST, OLDEST, RECORDED, KubernetesVersion, parse_version
from webhook.report.documents import ReportApi

_Command = TypeVar("_Command", bound=Callable[..., object])


class Version(click.ParamType[KubernetesVersion]):
    """A Kubernetes release as a parameter."""

    name = "version"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> KubernetesVersion:
        """Read it, or refuse it as a usage error."""
        try:
            return parse_version(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class RuleId(click.ParamType[str]):
    """The id of a rule, with a did-you-mean and completion."""

    name = "rule"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Take a known id, or refuse it as a usage error."""
        if str(value) not in BY_ID:
            import difflib  # noqa: PLC0415 only needed for a mistake

            near = difflib.get_close_matches(str(value), BY_ID, n=1)
            self.fail(f"no rule {str(value)[:64]!r}" + (f"; did you mean {near[0]!r}?" if near else ""), param, ctx)
        return str(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 click's signature
        param: click.Parameter,  # noqa: ARG002 click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        """The ids that begin so."""
        return [CompletionItem(rule.id, help=rule.title) for rule in BY_ID.values() if rule.id.startswith(incomplete)]


def looking_options(command: _Command) -> _Command:
    """--config, --kube-version, --namespace, --rule, --ceiling: what objects are looked at with."""
    for option in reversed(_LOOKING):
        command = option(command)
    return command


_LOOKING = (
    click.option(
        "--config",
        metavar="FILE",
        envvar="EVENSPREAD_CONFIG",
        show_envvar=True,
        type=click.Path(),
        help="Configuration: modes, ceilings, exemptions, further workload kinds.",
    ),
    click.option(
        "--kube-version",
        type=Version(),
        metavar="VERSION",
        help=f"Kubernetes release whose behaviour is asked for, {OLDEST} to {NEWEST}.  [default: {RECORDED}]",
    ),
    click.option("-n", "--namespace", metavar="NAME", default="", help="Namespace of objects that name none."),
    click.option(
        "--rule", "rules", type=RuleId(), metavar="ID", multiple=True, help="Report only this rule; may be repeated."
    ),
    click.option(
        "--ceiling",
        type=click.Choice([str(mode) for mode in Mode]),
        help="Instead of the configuration's ceilings; with deny, modes are what they were without any.",
    ),
)

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice([*FORMATS]),
    default="text",
    show_default=True,
    help="Format of the results.",
)

report_api_option = click.option(
    "--report-api",
    type=click.Choice([str(api) for api in ReportApi]),
    default=str(ReportApi.OPEN_REPORTS),
    show_default=True,
    help="With report: the API of the documents.",
)

fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["high", "medium", "low", "never"]),
    default="high",
    show_default=True,
    help="Lowest severity of a finding that makes the exit code 1.",
)


def frame(
    *,
    config: str | None,
    kube_version: KubernetesVersion | None,
    namespace: str,
    rules: tuple[str, ...],
    ceiling: str | None,
) -> Frame:
    """What the options above stand for.

    Errors: exits with 2 where the configuration has faults, after printing each.
    """
    today = datetime.now(UTC).date().isoformat()
    policy = _policy(config, today) if config else Policy()
    if ceiling is not None:
        policy = structs.replace(policy, ceiling=Mode(ceiling), namespaces=())
    return Frame(
        policy=policy, version=kube_version or RECORDED, today=today, namespace=namespace, rules=frozenset(rules)
    )


def _policy(file: str, today: str) -> Policy:
    from webhook.config import ConfigError, load_policy  # noqa: PLC0415 the JSON Schema library is slow to import

    try:
        loaded = load_policy(file, today=today)
    except ConfigError as error:
        click.echo(error.render(), err=True)
        click.get_current_context().exit(Exit.USAGE)
    for warning in loaded.rendered_warnings():
        click.echo(warning, err=True)
    return loaded.policy
