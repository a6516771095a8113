"""The policy that evenspread's installation in a live cluster uses: the ConfigMap of the chart."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.live_cluster import CONFIG_MAP
from webhook.cli.terminal import say
from webhook.cluster.connection import ClusterError, status_text
from webhook.cluster.live import LiveCluster
from webhook.config import POLICY_KEY, ConfigError, Loaded, config_map_policy
from webhook.core.api.well_known import APP_COMPONENT
from webhook.core.text import listed

_CHART = "helm.sh/chart"
_LABELS = urlencode({"labelSelector": f"{APP_COMPONENT}=webhook"})
# Users without rights on the whole cluster may have some in the namespace of docs/install.md.
_PLACES = ("/api/v1/configmaps", "/api/v1/namespaces/evenspread/configmaps")
_BUILT_IN = "the built-in policy applies; --config FILE selects another"
_SHOWN = 3

_ConfigMap = Mapping[str, Any]


def installed_policy(live: LiveCluster, config: str | None, today: str) -> Loaded | None:
    """The policy of the cluster's installation; None where the built-in one applies. One line names the choice.

    Args:
        live: The cluster.
        config: ``configmap:NAMESPACE/NAME``; without it the chart's labels select.
        today: An ISO date, for exemptions that are over.

    Errors: CommandError for a policy that evenspread refuses, and for a named ConfigMap that cannot be read.
    """
    found = _named(live, config) if config else _labelled(live)
    if found is None:
        return None
    title = f"ConfigMap {_title(found)}"
    try:
        return config_map_policy(found.get("data") or {}, title=title, today=today)
    except ConfigError as error:
        wrong = f"{live.source}: {title} has a policy that evenspread refuses; correct it, or add --config FILE"
        raise CommandError(f"{wrong}\n{error.render()}", Exit.USAGE) from error


def _named(live: LiveCluster, config: str) -> _ConfigMap:
    """The ConfigMap that --config names. Errors: CommandError."""
    namespace, slash, name = config.removeprefix(CONFIG_MAP).partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise CommandError(f"--config {config[:64]}: write it as {CONFIG_MAP}NAMESPACE/NAME")
    status, content, why = _get(live, f"/api/v1/namespaces/{quote(namespace)}/configmaps/{quote(name)}")
    if status != HTTPStatus.OK:
        raise CommandError(f"{live.source}: ConfigMap {namespace}/{name}: {why}", Exit.CLUSTER if not status else 2)
    say(f"{live.source}: policy of ConfigMap {namespace}/{name}")
    return content


def _labelled(live: LiveCluster) -> _ConfigMap | None:
    """The first ConfigMap with the chart's labels."""
    refused = ""
    for path in _PLACES:
        status, content, why = _get(live, f"{path}?{_LABELS}")
        if status == HTTPStatus.OK:
            break
        refused = refused or why
    else:
        say(f"{live.source}: note: ConfigMaps cannot be read ({refused}): {_BUILT_IN}")
        return None
    found: list[_ConfigMap] = sorted(filter(_is_policy, content.get("items") or ()), key=_title)
    if not found:
        where = " in namespace evenspread" if refused else ""
        say(f"{live.source}: note: no ConfigMap of the evenspread chart{where}: {_BUILT_IN}")
        return None
    line = ""
    if len(found) > 1:
        # Anybody can label a ConfigMap. Only administrators register webhooks.
        registered = _registered(live)
        found.sort(key=lambda each: _title(each) not in registered)
        others = listed([_title(each) for each in found[1:]], _SHOWN)
        line = f", one of {len(found)} installations; --config {CONFIG_MAP}NAMESPACE/NAME selects another: {others}"
    say(f"{live.source}: policy of ConfigMap {_title(found[0])}{line}")
    return found[0]


def _registered(live: LiveCluster) -> frozenset[str]:
    """The Services that the API server asks, whose names the chart gives to its ConfigMaps too."""
    _, content, _ = _get(live, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations")
    services = (
        webhook.get("clientConfig", {}).get("service") or {}
        for each in content.get("items") or ()
        for webhook in each.get("webhooks") or ()
        if webhook.get("name") == "validate.evenspread.io"
    )
    return frozenset(f"{each.get('namespace')}/{each.get('name')}" for each in services)


def _is_policy(config_map: _ConfigMap) -> bool:
    labels = config_map.get("metadata", {}).get("labels") or {}
    return str(labels.get(_CHART, "")).startswith("evenspread-") and POLICY_KEY in (config_map.get("data") or {})


def _title(config_map: _ConfigMap) -> str:
    return f"{config_map['metadata'].get('namespace')}/{config_map['metadata'].get('name')}"


def _get(live: LiveCluster, path: str) -> tuple[int, _ConfigMap, str]:
    """Status, content and the reason of a failure; status 0 without an answer."""
    try:
        status, content = live.server.request("GET", path)
    except ClusterError as error:
        return 0, {}, str(error)
    return status, content, status_text(status)
