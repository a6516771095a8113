"""Create a Deployment by dry run, to test whether the webhook reviews writes.

The API server stores nothing. The Deployment breaks the rule `selector-not-self`. So the webhook's review returns a
warning, unless the policy turns the rule off.
"""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from msgspec.structs import replace

from webhook.cli.commands.doctor.api_fields import Object, at, selector_of
from webhook.cli.commands.doctor.facts import DryRun, InstallationFacts, Read, configured
from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import ClusterError
from webhook.core.api.well_known import APP_NAME, HOSTNAME, NAMESPACE_NAME
from webhook.core.policy.lookup import ceiling_for, exemption_for, mode_for
from webhook.core.policy.matching import MatchedObject
from webhook.core.policy.policy import Mode
from webhook.core.rules.rule_set import BY_ID

VALIDATE = "validate.evenspread.io"
_RULE = "selector-not-self"
_NAME = "evenspread-doctor"
_NAMESPACE = "default"  # every cluster has it
# The chart's conditions match the Deployment. Other conditions may not.
_CONDITIONS = frozenset(
    {
        *("not-being-deleted", "new-or-its-spec-changed", "not-made-by-a-controller", "not-scaled-by-a-controller"),
        "no-revision-of-a-controller",
    }
)
_WARNING = re.compile(r"\bevenspread[/:]")
_TRIES = 2  # with Ignore, a single slow answer admits the write unreviewed


def sent_dry_run(server: ApiServer, facts: InstallationFacts, get: Callable[[str], Read[Object | None]]) -> DryRun:
    """Create the test Deployment by dry run, and return the API server's response.

    Never raises. ``get`` reads an object by its URL path.
    """
    webhook = next((webhook for _, webhook in configured(facts) if at(webhook, "name") == VALIDATE), None)
    if webhook is None:
        return DryRun(message="no webhook is registered")
    namespace = get(f"/api/v1/namespaces/{_NAMESPACE}")
    labels = {NAMESPACE_NAME: _NAMESPACE, **at(namespace, "metadata", "labels", default={})}
    dry_run = DryRun(namespace=_NAMESPACE, expected=_warns(facts, labels), message=_exclusion(webhook, labels))
    for _ in range(0 if dry_run.message else _TRIES):
        dry_run = _sent(server, dry_run)
        if dry_run.warned or dry_run.status >= HTTPStatus.BAD_REQUEST or not dry_run.status:
            break
    return dry_run


def _sent(server: ApiServer, dry_run: DryRun) -> DryRun:
    path = f"/apis/apps/v1/namespaces/{dry_run.namespace}/deployments?dryRun=All&fieldManager={_NAME}"
    try:
        answer = server.send("POST", path, _DEPLOYMENT)
    except ClusterError as error:
        return replace(dry_run, message=str(error))
    message = str(at(answer.content, "message"))
    return replace(dry_run, status=answer.status, message=message, warned=bool(_WARNING.search(answer.warnings)))


def _exclusion(webhook: Object, labels: Mapping[str, str]) -> str:
    """Return the reason why the webhook does not receive the Deployment. Empty if it does."""
    namespaces = selector_of(at(webhook, "namespaceSelector", default=None))
    if namespaces is not None and not namespaces.matches(labels):
        return f"the webhook's namespaceSelector excludes namespace {_NAMESPACE}"
    objects = selector_of(at(webhook, "objectSelector", default=None))
    if objects is not None and not objects.matches(_LABELS):
        return "the webhook's objectSelector excludes objects without its labels"
    names = [at(condition, "name") for condition in at(webhook, "matchConditions", default=())]
    if others := [name for name in names if name not in _CONDITIONS]:
        return f"the webhook's matchCondition {others[0]} may exclude the object"
    return ""


def _warns(facts: InstallationFacts, labels: Mapping[str, str]) -> bool | None:
    """Whether the policy warns about the Deployment or denies it. None if the policy is unknown."""
    policy, rule = facts.policy, BY_ID[_RULE]
    if policy is None:
        return None
    target = MatchedObject(namespace=_NAMESPACE, namespace_labels=labels, kind="Deployment", name=_NAME, labels=_LABELS)
    mode = mode_for(policy, rule.id, rule.mode, rule.since).capped(ceiling_for(policy, _NAMESPACE, labels))
    today = facts.now.date().isoformat()
    return mode.rank >= Mode.WARN.rank and not exemption_for(policy, rule.id, target, today)


_LABELS = {APP_NAME: _NAME}
_CONSTRAINT = {
    "maxSkew": 1,
    "topologyKey": HOSTNAME,
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {APP_NAME: f"not-{_NAME}"}},
}
_DEPLOYMENT: Mapping[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": _NAME, "labels": _LABELS},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": _LABELS},
        "template": {
            "metadata": {"labels": _LABELS},
            "spec": {
                "topologySpreadConstraints": [_CONSTRAINT],
                "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [
                    {
                        "name": "none",
                        "image": "registry.k8s.io/pause",
                        "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"memory": "1Mi"}},
                        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                    }
                ],
            },
        },
    },
}
