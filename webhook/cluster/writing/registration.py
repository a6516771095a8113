"""Register a webhook outside the cluster, and remove the registration.

The webhook is fail-open, has a timeout of two seconds, and excludes system namespaces. So a webhook in a terminal
cannot block a cluster. If removing the registration fails, a single `kubectl delete` is enough.
"""

import base64
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple

from webhook.cluster.connection import ApiResponse, ApiServer, JsonObject
from webhook.cluster.errors import ClusterError
from webhook.cluster.resources import group_path
from webhook.core.api.spread_group import API_VERSION, RESOURCE
from webhook.core.api.well_known import (
    APP_MANAGED_BY,
    APP_NAME,
    CONTROLLER_ACCOUNT_SUFFIX,
    CONTROLLER_MANAGER,
    FALLBACK_ANNOTATION,
    KUBE_SYSTEM_ACCOUNT,
    MIRROR_ANNOTATION,
    NAMESPACE_NAME,
    SKIP_ANNOTATION,
)
from webhook.core.policy.defaults import Defaults
from webhook.core.policy.options import FallbackMode
from webhook.core.workloads.kinds import KINDS, MADE_BY, POD, SCALED, resource_name

REGISTRATION_NAME = "evenspread-local"
_GROUP = "/apis/admissionregistration.k8s.io/v1"
_MANAGER = {APP_NAME: "evenspread", APP_MANAGED_BY: "evenspread-webhook"}
_TIMEOUT_SECONDS = 2  # as in the chart: each write waits this long if this process is gone but still registered
_SYSTEM = ("kube-system", "kube-public", "kube-node-lease")

_WRITES = ("CREATE", "UPDATE")
# Group, resources, operations. A pod's constraints are immutable.
_SCALES = ("apps", tuple(f"{resource_name(kind)}/scale" for kind in SCALED), ("UPDATE",))
_PODS = (POD[0], (resource_name(POD),), ("CREATE",))
_REVIEWED = [kind for kind, row in KINDS.items() if row.reviewed and kind != POD]
_VALIDATED: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    _PODS,
    _SCALES,
    ("apps", ("controllerrevisions",), _WRITES),
    *(
        (group, tuple(resource_name(kind) for kind in _REVIEWED if kind[0] == group), _WRITES)
        for group in dict.fromkeys(group for group, _ in _REVIEWED)
    ),
)
# Shards of a SpreadGroup have these kinds. Their templates get its plan.
_PLANNED = (("apps", ("deployments", "statefulsets"), _WRITES),)


class _Webhook(NamedTuple):
    """A webhook of a configuration: its route and its filters."""

    name: str
    route: str
    rules: Sequence[tuple[str, tuple[str, ...], tuple[str, ...]]]
    conditions: Mapping[str, str]


# CEL conditions filter requests without an effect. All must hold. None may raise on an absent field: under
# failurePolicy Fail that would refuse the request.
_MADE = ", ".join(
    f"'{made[0]}/{made[1]} of {owner[0] or 'v1'}/{owner[1]}'"
    for made, owner in sorted(MADE_BY, key=lambda pair: pair[::-1])
)
_ANNOTATED = "!has(object.metadata.annotations) || !('{0}' in object.metadata.annotations)"
_UNOWNED = "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(owner, "
_CONTROLLED = "has(owner.controller) && owner.controller && "
_TO_VALIDATE = {
    # A StatefulSet also adopts a revision under deletion.
    "not-being-deleted": (
        "!has(object.metadata.deletionTimestamp) || request.resource.resource == 'controllerrevisions'"
    ),
    "new-or-its-spec-changed": (
        "request.operation != 'UPDATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"
    ),
    # Authors can forge an owner reference, but not the sender.
    "not-made-by-a-controller": (
        "!has(object.metadata.ownerReferences) || !has(request.userInfo.username) || "
        f"!(request.userInfo.username in ['{CONTROLLER_MANAGER}'] || "
        f"request.userInfo.username.startsWith('{KUBE_SYSTEM_ACCOUNT}') && "
        f"request.userInfo.username.endsWith('{CONTROLLER_ACCOUNT_SUFFIX}')) || "
        f"!object.metadata.ownerReferences.exists(owner, {_CONTROLLED}"
        "request.kind.group + '/' + request.kind.kind + ' of ' + owner.apiVersion.split('/')[0] + '/' + owner.kind "
        f"in [{_MADE}])"
    ),
    # Autoscalers read no warnings.
    "not-scaled-by-a-controller": (
        "!has(request.subResource) || request.subResource != 'scale' || !has(request.userInfo.username) || "
        f"!(request.userInfo.username in ['{CONTROLLER_MANAGER}'] || "
        f"request.userInfo.username.startsWith('{KUBE_SYSTEM_ACCOUNT}'))"
    ),
    # Controllers record reviewed templates. The garbage collector may remove an operator's object as owner.
    "no-revision-of-a-controller": (
        "request.resource.resource != 'controllerrevisions' || !has(request.userInfo.username) || "
        f"!(request.userInfo.username in ['{CONTROLLER_MANAGER}'] || "
        f"request.userInfo.username.startsWith('{KUBE_SYSTEM_ACCOUNT}')) || "
        "request.operation == 'UPDATE' && has(oldObject.metadata.ownerReferences) && "
        f"oldObject.metadata.ownerReferences.exists(owner, {_CONTROLLED}!owner.apiVersion.startsWith('apps/'))"
    ),
}
_UNCONSTRAINED = "!has(object.spec.topologySpreadConstraints) || size(object.spec.topologySpreadConstraints) == 0"
_TO_MUTATE = {
    "declares-no-constraint": _UNCONSTRAINED,
    "declares-no-constraint-or-asks-for-fallback": (
        f"{_UNCONSTRAINED} || has(object.metadata.annotations) && "
        f"'{FALLBACK_ANNOTATION}' in object.metadata.annotations"
    ),
    "not-of-a-daemon-set": (
        f"{_UNOWNED}{_CONTROLLED}owner.apiVersion.startsWith('apps/') && owner.kind == 'DaemonSet')"
    ),
    "has-no-node": "!has(object.spec.nodeName) || object.spec.nodeName == ''",
    "not-a-mirror-pod": _ANNOTATED.format(MIRROR_ANNOTATION),
    "not-skipped": (
        f"{_ANNOTATED.format(SKIP_ANNOTATION)} || object.metadata.annotations['{SKIP_ANNOTATION}'] == 'false'"
    ),
}
# A changed template restarts the pods, so an unchanged template stays as it is.
_TO_PLAN = {
    "new-or-its-template-changed": "request.operation != 'UPDATE' || object.spec.template != oldObject.spec.template"
}
_VALIDATE = _Webhook("validate.evenspread.io", "validate", _VALIDATED, _TO_VALIDATE)
_GROUPS = _Webhook("groups.evenspread.io", "mutate", _PLANNED, _TO_PLAN)


def configurations(url: str, ca: bytes, defaults: Defaults, *, groups: bool = False) -> tuple[JsonObject, ...]:
    """Return the webhook configurations, as in the chart. Omit the mutating one if these defaults patch no pod."""
    documents = [_configuration("Validating", [_webhook(_VALIDATE, url, ca)])]
    mutating = list[dict[str, object]]()
    if defaults.injects:
        conditions = {name: cel for name, cel in _TO_MUTATE.items() if name not in _unneeded(defaults)}
        of_pods = _Webhook("mutate.evenspread.io", "mutate", (_PODS,), conditions)
        mutating.append(_webhook(of_pods, url, ca) | {"reinvocationPolicy": "IfNeeded"})
    if groups:
        mutating.append(_webhook(_GROUPS, url, ca) | {"reinvocationPolicy": "Never"})
    return (*documents, *([_configuration("Mutating", mutating)] if mutating else []))


def has_groups(server: ApiServer) -> bool:
    """Whether the API server has SpreadGroups."""
    answer = server.send("GET", group_path(API_VERSION))
    served = answer.content.get("resources") or () if answer.status == HTTPStatus.OK else ()
    return any(resource.get("name") == RESOURCE for resource in served)


def _unneeded(defaults: Defaults) -> tuple[str, ...]:
    """Return the match conditions to omit from the webhook configuration.

    With these defaults, the omitted conditions would skip pods that need a patch.
    """
    strict, asking = "declares-no-constraint", "declares-no-constraint-or-asks-for-fallback"
    if defaults.fill_null_selector or defaults.fallback == FallbackMode.ALWAYS:
        return strict, asking
    return (asking,) if defaults.fallback == FallbackMode.OFF else (strict,)


def register(server: ApiServer, configurations: Sequence[JsonObject], *, rehearsed: bool = False) -> None:
    """Create the configurations, or update existing ones of evenspread. ``rehearsed`` is a dry run.

    Raises:
        ClusterError: A configuration belongs to another program, or the API server refuses.
    """
    for configuration in configurations:
        path = _path(configuration["kind"])
        existing = server.send("GET", path)
        # Server-side apply would overwrite any object of this name.
        if existing.status == HTTPStatus.OK and not _is_ours(existing.content):
            raise ClusterError(
                f"{configuration['kind']} {REGISTRATION_NAME} exists, but evenspread did not create it; delete it first"
            )
        answer = server.apply(path, configuration, rehearsed=rehearsed)
        if answer.status not in {HTTPStatus.OK, HTTPStatus.CREATED}:
            raise ClusterError(_refused(configuration, answer))


def unregister(server: ApiServer, configurations: Sequence[JsonObject]) -> None:
    """Delete the configurations created by `register`.

    Raises:
        ClusterError: The API server refused a request. The other configurations are deleted.
    """
    failed = []
    for configuration in configurations:
        path = _path(configuration["kind"])
        answer = server.send("GET", path)
        if answer.status == HTTPStatus.OK:
            if not _is_ours(answer.content):
                continue
            answer = server.send("DELETE", path)
        # Another client may have deleted it between the two requests.
        if answer.status not in {HTTPStatus.OK, HTTPStatus.ACCEPTED, HTTPStatus.NOT_FOUND}:
            failed.append(_refused(configuration, answer))
    if failed:
        raise ClusterError("; ".join(failed))


def _refused(configuration: JsonObject, answer: ApiResponse) -> str:
    return f"{configuration['kind']} {REGISTRATION_NAME}: {answer.status} {answer.content.get('message', '')}"


def _is_ours(configuration: JsonObject) -> bool:
    return _MANAGER.items() <= (configuration.get("metadata", {}).get("labels") or {}).items()


def _path(kind: str) -> str:
    return f"{_GROUP}/{kind.lower()}s/{REGISTRATION_NAME}"


def _webhook(webhook: _Webhook, url: str, ca: bytes) -> dict[str, object]:
    return {
        "name": webhook.name,
        "clientConfig": {"url": f"{url}/{webhook.route}", "caBundle": base64.b64encode(ca).decode()},
        "rules": [
            {
                "apiGroups": [group],
                "apiVersions": ["*"],
                "operations": list(operations),
                "resources": list(resources),
                "scope": "Namespaced",
            }
            for group, resources, operations in webhook.rules
        ],
        "namespaceSelector": {
            "matchExpressions": [{"key": NAMESPACE_NAME, "operator": "NotIn", "values": list(_SYSTEM)}]
        },
        "matchConditions": [{"name": name, "expression": cel} for name, cel in webhook.conditions.items()],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": _TIMEOUT_SECONDS,
    }


def _configuration(family: str, webhooks: Sequence[JsonObject]) -> JsonObject:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{family}WebhookConfiguration",
        "metadata": {"name": REGISTRATION_NAME, "labels": dict(_MANAGER)},
        "webhooks": webhooks,
    }
