"""Options that several commands have, and what they turn into."""

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem
from msgspec import Struct, structs

from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.formats import FORMATS
from webhook.cli.frame import Frame, today
from webhook.cli.live_cluster import CONFIG_MAP, Given, open_cluster
from webhook.cli.parameters import VERSION
from webhook.core.api.version import ANNOUNCED, RECORDED, SUPPORTED, KubernetesVersion
from webhook.core.policy.policy import Mode, Policy
from webhook.core.rules.rule_set import BY_ID
from webhook.core.text import did_you_mean
from webhook.report.documents import ReportApi

if TYPE_CHECKING:
    from webhook.config import Loaded

_Command = TypeVar("_Command", bound=Callable[..., object])


class Results(Struct, frozen=True, kw_only=True):
    """How findings are told: the format, the lowest severity that makes the exit code 1, and how much of the rest."""

    output: str
    report_api: str
    fail_on: str
    verbose: bool = False


class RuleId(click.ParamType[str]):
    """The id of a rule, with a did-you-mean and completion."""

    name = "rule"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Take a known id, or refuse it as a usage error."""
        if str(value) not in BY_ID:
            self.fail(f"no rule {str(value)[:64]!r}{did_you_mean(str(value), BY_ID)}", param, ctx)
        return str(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 click's signature
        param: click.Parameter,  # noqa: ARG002 click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        """The ids that begin so."""
        return [CompletionItem(rule.id, help=rule.title) for rule in BY_ID.values() if rule.id.startswith(incomplete)]


def frame_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add --kube-version, --namespace and the options of `policy_option`, and pass their `Frame` to the command."""

    @functools.wraps(command)
    def framed(*, policy: Policy, kube_version: KubernetesVersion | None, namespace: str, **rest: object) -> object:
        frame = Frame(policy=policy, asked_version=kube_version, today=today(), namespace=namespace)
        return command(frame=frame, **rest)

    return policy_option(_with(_FRAME, framed))


def looking_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add --rule, --ceiling and `frame_options`, and pass their `Frame` to the command."""

    @functools.wraps(command)
    def narrowed(*, frame: Frame, rules: tuple[str, ...], ceiling: str | None, **rest: object) -> object:
        policy = frame.policy
        if ceiling is not None:
            policy = structs.replace(policy, ceiling=Mode(ceiling), namespaces=())
        return command(frame=structs.replace(frame, policy=policy, rules=frozenset(rules)), **rest)

    return frame_options(_with(_LOOKING, narrowed))


def policy_option(command: Callable[..., object]) -> Callable[..., object]:
    """Add --config, and pass its policy to the command. Without it, pass the policy of the live cluster.

    Errors: exits with 2 where the configuration has faults, after printing each.
    """

    @functools.wraps(command)
    def decided(*, config: str | None, **rest: object) -> object:
        given = rest.get("given")
        if config and not config.startswith(CONFIG_MAP):
            policy = _policy(config, today())
        elif isinstance(given, Given) and given.live:
            policy, rest["given"] = _installed(given, config)
        elif config:
            raise click.UsageError(f"--config {CONFIG_MAP}NAMESPACE/NAME needs a live cluster: --cluster, or --context")
        else:
            policy = Policy()
        return command(policy=policy, **rest)

    return _CONFIG(decided)


def result_options(*more: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """--output, --report-api, --fail-on, --verbose; the command gets them as ``results``.

    Shape: ``more`` are formats that the command has besides those of all.
    """

    def decorated(command: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(command)
        def told(*, output: str, report_api: str, fail_on: str, verbose: bool, **rest: object) -> object:
            results = Results(output=output, report_api=report_api, fail_on=fail_on, verbose=verbose)
            return command(results=results, **rest)

        return output_option(*FORMATS, *more, text="Format of the results.")(_with(_RESULTS, told))

    return decorated


def output_option(*formats: str, text: str = "Format.") -> Callable[[Callable[..., object]], Callable[..., object]]:
    """--output, one of the formats; ``text`` is its help."""
    return click.option("-o", "--output", type=click.Choice(formats), default="text", show_default=True, help=text)


def current_cluster_options(command: Callable[..., object]) -> Callable[..., object]:
    """`cluster_options` of a command that reads the kubeconfig's current cluster where none of them is given."""

    @functools.wraps(command)
    def named(*, given: Given, **rest: object) -> object:
        return command(given=structs.replace(given, cluster=True) if given == Given() else given, **rest)

    return cluster_options(named)


def cluster_options(command: Callable[..., object]) -> Callable[..., object]:
    """--snapshot, --cluster, --kubeconfig, --context, --as; the command gets them as ``given``.

    Errors: a usage error for a file and a live cluster at once.
    """

    @functools.wraps(command)
    def named(
        *,
        snapshot: str | None,
        cluster: bool,
        kubeconfig: str | None,
        context: str | None,
        user: str | None,
        **rest: object,
    ) -> object:
        given = Given(snapshot=snapshot, cluster=cluster, kubeconfig=kubeconfig, context=context, user=user)
        if given.live and snapshot is not None:
            raise click.UsageError("--snapshot stands for a cluster; leave --cluster and its options out")
        return command(given=given, **rest)

    return _with(_CLUSTER, named)


def _with(options: Iterable[Callable[[_Command], _Command]], command: _Command) -> _Command:
    for option in reversed(tuple(options)):
        command = option(command)
    return command


_CONFIG = click.option(
    "--config",
    metavar="FILE",
    envvar="EVENSPREAD_CONFIG",
    show_envvar=True,
    type=click.Path(),
    help="Configuration: modes, ceilings, exemptions, further workload kinds. configmap:NAMESPACE/NAME reads it from a "
    "live cluster.  [default: of a live cluster, the installed policy]",
)

_FRAME = (
    click.option(
        "--kube-version",
        type=VERSION,
        metavar="VERSION",
        help=f"Behave as this Kubernetes release: {SUPPORTED}, or {ANNOUNCED} as announced.  [default: {RECORDED}]",
    ),
    click.option(
        "-n",
        "--namespace",
        metavar="NAME",
        default="",
        help="Namespace of KIND/NAME and of objects without one. audit checks only this namespace.",
    ),
)

_LOOKING = (
    click.option(
        "--rule",
        "rules",
        type=RuleId(),
        metavar="ID",
        multiple=True,
        help="Report only this rule. Repeat it for several.",
    ),
    click.option(
        "--ceiling",
        type=click.Choice([str(mode) for mode in Mode]),
        help="Highest mode of any rule, in place of the configured ceilings. With deny, every rule has its own mode.",
    ),
)

_CLUSTER = (
    click.option(
        "--snapshot",
        metavar="FILE",
        type=click.Path(),
        help="Read the cluster from this file: a snapshot, or output of kubectl (JSON, YAML).",
    ),
    click.option("--cluster", is_flag=True, help="Read the kubeconfig's current cluster. Nothing is written to it."),
    click.option(
        "--kubeconfig",
        metavar="FILE",
        type=click.Path(),
        help="Read the cluster of this kubeconfig.  [default: as kubectl]",
    ),
    click.option("--context", metavar="NAME", help="Read the cluster of this context."),
    click.option("--as", "user", metavar="USER", help="Read as this user (impersonation)."),
)

_RESULTS = (
    click.option(
        "--report-api",
        type=click.Choice([str(api) for api in ReportApi]),
        default=str(ReportApi.OPEN_REPORTS),
        show_default=True,
        help="API of the documents of -o report.",
    ),
    click.option(
        "--fail-on",
        type=click.Choice(["high", "medium", "low", "never"]),
        default="high",
        show_default=True,
        help="Exit with 1 for findings of this severity or higher.",
    ),
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        help="List each file of a note. With text, also list the rules that were not evaluated.",
    ),
)


def _policy(file: str, today: str) -> Policy:
    from webhook.config import ConfigError, load_policy  # noqa: PLC0415 the JSON Schema library is slow to import

    try:
        loaded = load_policy(file, today=today)
    except ConfigError as error:
        click.echo(error.render(), err=True)
        click.get_current_context().exit(Exit.USAGE)
    return _warned(loaded)


def _installed(given: Given, config: str | None) -> tuple[Policy, Given]:
    """The policy of the installation in a live cluster, and the options with the cluster opened.

    A cluster that cannot be opened is an error of the command, after its other arguments were checked.
    """
    from webhook.cli.installed_policy import installed_policy  # noqa: PLC0415 offline work does without

    try:
        live = open_cluster(given)
    except CommandError as error:
        return Policy(), structs.replace(given, opened=error)
    loaded = installed_policy(live, config, today())
    return Policy() if loaded is None else _warned(loaded), structs.replace(given, opened=live)


def _warned(loaded: "Loaded") -> Policy:
    """Its policy, after printing the warnings about it."""
    for warning in loaded.rendered_warnings():
        click.echo(warning, err=True)
    return loaded.policy
