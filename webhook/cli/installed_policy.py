"""The policy of the installation in a live cluster, from the chart's ConfigMap."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.live_cluster import CONFIG_MAP
from webhook.cli.output.terminal import print_message
from webhook.cluster.errors import ClusterError, status_text
from webhook.cluster.live import LiveCluster
from webhook.config import POLICY_KEY, ConfigError, Loaded, config_map_policy
from webhook.core.api.well_known import APP_COMPONENT
from webhook.core.text import listed

_CHART = "helm.sh/chart"
_LABELS = urlencode({"labelSelector": f"{APP_COMPONENT}=webhook"})
# Users without cluster-wide permissions may have some in the namespace of docs/install.md.
_PATHS = ("/api/v1/configmaps", "/api/v1/namespaces/evenspread/configmaps")
_MAX_SHOWN = 3  # other installations in the line

_ConfigMap = Mapping[str, Any]


def installed_policy(live: LiveCluster, config: str | None, today: str, other: str) -> Loaded | None:
    """Read the policy of the installation, and name its ConfigMap on stderr. None without an installation.

    Args:
        live: The cluster.
        config: ``configmap:NAMESPACE/NAME``. None selects by the chart's labels.
        today: ISO date, for expired exemptions.
        other: Names the policy used without an installation, in a note on stderr.

    Raises:
        CommandError: The policy is invalid, or the named ConfigMap cannot be read.
    """
    config_map = _named(live, config) if config else _labelled(live, f"using {other}; --config FILE selects another")
    if config_map is None:
        return None
    title = f"ConfigMap {_title(config_map)}"
    try:
        return config_map_policy(config_map.get("data") or {}, title=title, today=today)
    except ConfigError as error:
        message = f"{live.source}: the policy in {title} is invalid; correct it, or add --config FILE"
        raise CommandError(f"{message}\n{error.render()}", Exit.USAGE) from error


def _named(live: LiveCluster, config: str) -> _ConfigMap:
    """The ConfigMap in --config. Raises CommandError if it cannot be read."""
    namespace, slash, name = config.removeprefix(CONFIG_MAP).partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise CommandError(f"--config {config[:64]}: write it as {CONFIG_MAP}NAMESPACE/NAME")
    status, content, why = _get(live, f"/api/v1/namespaces/{quote(namespace)}/configmaps/{quote(name)}")
    if status != HTTPStatus.OK:
        raise CommandError(f"{live.source}: ConfigMap {namespace}/{name}: {why}", Exit.CLUSTER if not status else 2)
    print_message(f"{live.source}: policy of ConfigMap {namespace}/{name}")
    return content


def _labelled(live: LiveCluster, otherwise: str) -> _ConfigMap | None:
    """A ConfigMap with the chart's labels, preferably of a registered webhook. None if there is none."""
    refused = ""
    for path in _PATHS:
        status, content, why = _get(live, f"{path}?{_LABELS}")
        if status == HTTPStatus.OK:
            break
        refused = refused or why
    else:
        print_message(f"{live.source}: note: ConfigMaps cannot be read ({refused}): {otherwise}")
        return None
    policies: list[_ConfigMap] = sorted(filter(_is_policy, content.get("items") or ()), key=_title)
    if not policies:
        where = " in namespace evenspread" if refused else ""
        print_message(f"{live.source}: note: no ConfigMap of the evenspread chart{where}: {otherwise}")
        return None
    suffix = ""
    if len(policies) > 1:
        # Many users can label a ConfigMap. Only administrators register webhooks.
        registered = _registered(live)
        policies.sort(key=lambda config_map: _title(config_map) not in registered)
        others = listed([_title(config_map) for config_map in policies[1:]], _MAX_SHOWN)
        count = len(policies)
        suffix = f", one of {count} installations; --config {CONFIG_MAP}NAMESPACE/NAME selects another: {others}"
    print_message(f"{live.source}: policy of ConfigMap {_title(policies[0])}{suffix}")
    return policies[0]


def _registered(live: LiveCluster) -> frozenset[str]:
    """Return the Services of evenspread's validating webhooks. The policy's ConfigMap has the same name."""
    _, content, _ = _get(live, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations")
    services = (
        webhook.get("clientConfig", {}).get("service") or {}
        for configuration in content.get("items") or ()
        for webhook in configuration.get("webhooks") or ()
        if webhook.get("name") == "validate.evenspread.io"
    )
    return frozenset(f"{service.get('namespace')}/{service.get('name')}" for service in services)


def _is_policy(config_map: _ConfigMap) -> bool:
    labels = config_map.get("metadata", {}).get("labels") or {}
    return str(labels.get(_CHART, "")).startswith("evenspread-") and POLICY_KEY in (config_map.get("data") or {})


def _title(config_map: _ConfigMap) -> str:
    return f"{config_map['metadata'].get('namespace')}/{config_map['metadata'].get('name')}"


def _get(live: LiveCluster, path: str) -> tuple[int, _ConfigMap, str]:
    """Return HTTP status, object and status text. Without an answer, the status is 0 and the text the error."""
    try:
        answer = live.server.send("GET", path)
    except ClusterError as error:
        return 0, {}, str(error)
    return answer.status, answer.content, status_text(answer.status)
