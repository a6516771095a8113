"""Command-line options shared by several commands, as decorators. Commands get the parsed values."""

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem
from msgspec import Struct, structs

from webhook.cli.checking.levels import Level
from webhook.cli.config_discovery import FoundConfig, find_config
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.formats import FORMATS
from webhook.cli.frame import Frame, today
from webhook.cli.live_cluster import CONFIG_MAP, ClusterSelection, open_cluster
from webhook.cli.output.terminal import print_message
from webhook.cli.parameters import VERSION
from webhook.core.api.version import ANNOUNCED, RECORDED, SUPPORTED, KubernetesVersion
from webhook.core.policy.policy import Mode, Policy
from webhook.core.rules.rule_set import BY_ID
from webhook.core.spelling import did_you_mean
from webhook.report.documents import ReportApi

if TYPE_CHECKING:
    from webhook.config import Loaded

_Command = TypeVar("_Command", bound=Callable[..., object])


class ResultOptions(Struct, frozen=True, kw_only=True):
    """The options for findings: --output, --report-api, --fail-on (None for never) and --verbose."""

    output: str
    report_api: str
    fail_on: Level | None
    verbose: bool = False


class _RuleId(click.ParamType[str]):
    """A command-line value that must be a known rule id. Suggests similar ids and completes prefixes."""

    name = "rule"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a known id. Anything else is a usage error."""
        if str(value) not in BY_ID:
            self.fail(f"no rule {str(value)[:64]!r}{did_you_mean(str(value), BY_ID)}", param, ctx)
        return str(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 click's signature
        param: click.Parameter,  # noqa: ARG002 click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        """The ids with this prefix."""
        return [CompletionItem(rule.id, help=rule.title) for rule in BY_ID.values() if rule.id.startswith(incomplete)]


_CURRENT_HELP = "Read the kubeconfig's current cluster, without changing it."
RULE_ID = _RuleId()
_NAMESPACE_HELP = "Namespace of KIND/NAME, and of objects without a namespace."


def frame_options(command: Callable[..., object], namespace_help: str = _NAMESPACE_HELP) -> Callable[..., object]:
    """Add --kube-version, --namespace and --config. The command gets the options' values as ``frame``."""

    @functools.wraps(command)
    def framed(*, policy: Policy, kube_version: KubernetesVersion | None, namespace: str, **rest: object) -> object:
        frame = Frame(policy=policy, asked_version=kube_version, today=today(), namespace=namespace)
        return command(frame=frame, **rest)

    namespace_option = click.option("-n", "--namespace", metavar="NAME", default="", help=namespace_help)
    return policy_option(_with((kube_version_option, namespace_option), framed))


def review_options(command: Callable[..., object], namespace_help: str = _NAMESPACE_HELP) -> Callable[..., object]:
    """Add --rule, --ceiling and `frame_options`. The command gets them as ``frame``."""

    @functools.wraps(command)
    def narrowed(*, frame: Frame, rules: tuple[str, ...], ceiling: str | None, **rest: object) -> object:
        policy = frame.policy
        if ceiling is not None:
            policy = structs.replace(policy, ceiling=Mode(ceiling), namespaces=())
        return command(frame=structs.replace(frame, policy=policy, rules=frozenset(rules)), **rest)

    return frame_options(_with(_LOOKING, narrowed), namespace_help)


def policy_option(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options --config and --no-config.

    The command gets the chosen ``policy``. The first of these configurations applies: --config, the live cluster's, the
    repository's, the built-in one. A faulty configuration ends the command with exit code 2, after printing its faults.
    """

    @functools.wraps(command)
    def decided(*, config: str | None, no_config: bool, **rest: object) -> object:
        if config and not config.startswith(CONFIG_MAP):
            return command(policy=_policy(config, today()), **rest)
        selection, policy = rest.get("selection"), None
        found = None if no_config else find_config(Path.cwd())
        if isinstance(selection, ClusterSelection) and selection.live:
            policy, rest["selection"] = _installed(selection, config, found)
        elif config:
            raise click.UsageError(
                f"--config {CONFIG_MAP}NAMESPACE/NAME needs a live cluster: add --cluster or --context"
            )
        if policy is None and found is not None:
            policy = _discovered(found, verbose=_is_verbose(rest))
        return command(policy=policy or Policy(), **rest)

    return _with(_CONFIG, decided)


def result_options(*more: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Add --output with ``more`` formats, --report-api, --fail-on and --verbose, as the parameter ``results``."""

    def decorated(command: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(command)
        def with_results(*, output: str, report_api: str, fail_on: str, verbose: bool, **rest: object) -> object:
            lowest = None if fail_on == _NEVER else Level(fail_on)
            results = ResultOptions(output=output, report_api=report_api, fail_on=lowest, verbose=verbose)
            return command(results=results, **rest)

        return output_option(*FORMATS, *more, text="Format of the results.")(_with(_RESULTS, with_results))

    return decorated


def output_option(*formats: str, text: str = "Format.") -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Add --output with these formats and this help text."""
    return click.option("-o", "--output", type=click.Choice(formats), default="text", show_default=True, help=text)


def current_cluster_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add `cluster_options`, with the kubeconfig's current cluster as default."""
    return cluster_options(command, f"{_CURRENT_HELP}  [default]", by_default=True)


def cluster_options(
    command: Callable[..., object],
    cluster_help: str = _CURRENT_HELP,
    *,
    repeatable: bool = False,
    by_default: bool = False,
) -> Callable[..., object]:
    """Add --snapshot, --cluster, --kubeconfig, --context and --as, as the parameter ``selection``.

    With ``repeatable``, users can repeat --context. The caller then passes a single context to the returned command.
    With ``by_default``, a command line without these options selects the current cluster.
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
        selection = ClusterSelection(
            snapshot=snapshot, cluster=cluster, kubeconfig=kubeconfig, context=context, user=user
        )
        if selection.live and snapshot is not None:
            raise click.UsageError("--snapshot and a live cluster exclude each other: remove one of them")
        if by_default and selection == ClusterSelection():
            selection = ClusterSelection(cluster=True)
        return command(selection=selection, **rest)

    cluster_option = click.option("--cluster", is_flag=True, help=cluster_help)
    more = " Repeat it for more clusters." if repeatable else ""
    context_help = f"Read the cluster of this context.{more}"
    context_option = click.option("--context", metavar="NAME", multiple=repeatable, help=context_help)
    return _with((_SNAPSHOT, cluster_option, _KUBECONFIG, context_option, _AS_USER), named)


def _with(options: Iterable[Callable[[_Command], _Command]], command: _Command) -> _Command:
    for option in reversed(tuple(options)):
        command = option(command)
    return command


_CONFIG = (
    click.option(
        "--config",
        metavar="FILE",
        envvar="EVENSPREAD_CONFIG",
        show_envvar=True,
        type=click.Path(),
        help="The SpreadPolicy: modes, ceilings, exemptions, defaults. configmap:NAMESPACE/NAME reads it from a live "
        "cluster.  [default: the policy installed in a live cluster, else evenspread.yaml of the repository, else "
        "the built-in one]",
    ),
    click.option("--no-config", is_flag=True, help="Ignore evenspread.yaml and .evenspread.yaml."),
)

kube_version_option = click.option(
    "--kube-version",
    type=VERSION,
    metavar="VERSION",
    help=f"Behave as this Kubernetes release: {SUPPORTED}, or {ANNOUNCED} as announced.  [default: {RECORDED}]",
)

_LOOKING = (
    click.option(
        "--rule",
        "rules",
        type=RULE_ID,
        metavar="ID",
        multiple=True,
        help="Report only this rule. Repeat --rule for more rules.",
    ),
    click.option(
        "--ceiling",
        type=click.Choice([str(mode) for mode in Mode]),
        help="Limit the mode of all rules, in place of the configured ceilings. deny sets no limit.",
    ),
)

_SNAPSHOT = click.option(
    "--snapshot",
    metavar="FILE",
    type=click.Path(),
    help="Read the cluster from a file: a snapshot, or output of kubectl (JSON, YAML).",
)

_KUBECONFIG = click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(),
    help="Read the cluster of this kubeconfig.  [default: the same as kubectl]",
)

_AS_USER = click.option("--as", "user", metavar="USER", help="Read as this user (impersonation).")

_NEVER = "never"
_RESULTS = (
    click.option(
        "--report-api",
        type=click.Choice([str(api) for api in ReportApi]),
        default=str(ReportApi.OPEN_REPORTS),
        show_default=True,
        help="API of the reports in -o report.",
    ),
    click.option(
        "--fail-on",
        type=click.Choice([*map(str, Level), _NEVER]),
        default=str(Level.HIGH),
        show_default=True,
        help="Lowest level of findings with exit code 1.",
    ),
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        help="List all files of a repeated note. In text output, also list the rules that were not evaluated.",
    ),
)


def _is_verbose(arguments: Mapping[str, object]) -> bool:
    results = arguments.get("results")
    return results.verbose if isinstance(results, ResultOptions) else arguments.get("verbose") is True


def _discovered(found: FoundConfig, *, verbose: bool) -> Policy:
    file = os.path.relpath(found.file)
    if verbose:
        print_message(f"policy of {file}")
    return _policy(file, today(), within=found.root)


def _policy(file: str, today: str, within: Path | None = None) -> Policy:
    from webhook.config import ConfigError, load_policy  # noqa: PLC0415 the JSON Schema library is slow to import

    try:
        loaded = load_policy(file, today=today, within=within)
    except ConfigError as error:
        click.echo(error.render(), err=True)
        click.get_current_context().exit(Exit.USAGE)
    return _warned(loaded)


def _installed(
    selection: ClusterSelection, config: str | None, found: FoundConfig | None
) -> tuple[Policy | None, ClusterSelection]:
    """Return the policy of the live cluster's evenspread, and a new selection.

    The policy is None if evenspread is not installed or the connection fails. The new selection contains the open
    connection, or the connection error. The command reports this error after the check of its arguments.
    """
    from webhook.cli.installed_policy import installed_policy  # noqa: PLC0415 not needed offline

    try:
        live = open_cluster(selection)
    except CommandError as error:
        return None, structs.replace(selection, opened=error)
    other = "the built-in policy" if found is None else os.path.relpath(found.file)
    loaded = installed_policy(live, config, today(), other)
    return None if loaded is None else _warned(loaded), structs.replace(selection, opened=live)


def _warned(loaded: "Loaded") -> Policy:
    """Print the warnings about a policy and return it."""
    for warning in loaded.rendered_warnings():
        click.echo(warning, err=True)
    return loaded.policy
