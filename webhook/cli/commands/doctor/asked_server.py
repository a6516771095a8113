"""Ask the API server what it does with a write: create a Deployment by dry run, which stores nothing.

Its constraint breaks `selector-not-self`. A webhook that reviews it gives a warning, unless the policy says less.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from webhook.cli.commands.doctor.facts import Asked, Facts, Object, Read, at, configured, selector_of
from webhook.cluster.connection import ApiServer, ClusterError
from webhook.core.api.well_known import APP_NAME, HOSTNAME, NAMESPACE_NAME
from webhook.core.policy.lookup import ceiling_for, exemption_for, mode_for
from webhook.core.policy.matching import MatchedObject
from webhook.core.policy.policy import Mode
from webhook.core.rules.rule_set import BY_ID

VALIDATE = "validate.evenspread.io"
_RULE = "selector-not-self"
_NAME = "evenspread-doctor"
_NAMESPACE = "default"  # every cluster has it
# The chart's conditions let the Deployment through; a user's own may not.
_CONDITIONS = frozenset(
    {
        *("not-being-deleted", "new-or-its-spec-changed", "not-made-by-a-controller", "not-scaled-by-a-controller"),
        "no-revision-of-a-controller",
    }
)
_WARNING = re.compile(r"\bevenspread[/:]")
_TRIES = 2  # under Ignore one slow answer is enough to be admitted unreviewed


class Asking:
    """The questions to one API server about one installation."""

    def __init__(self, server: ApiServer, facts: Facts) -> None:
        self._server = server
        self._facts = facts
        self._webhook: Object | None = next(
            (each for _, each in configured(facts) if at(each, "name") == VALIDATE), None
        )

    def ask(self, get: Callable[[str], Read[Object | None]]) -> Asked:
        """Create the Deployment by dry run. Never raises."""
        if self._webhook is None:
            return Asked(message="no webhook is registered")
        namespace = get(f"/api/v1/namespaces/{_NAMESPACE}")
        labels = {NAMESPACE_NAME: _NAMESPACE, **at(namespace, "metadata", "labels", default={})}
        asked = Asked(namespace=_NAMESPACE, expected=self._warns(labels), message=self._left_out(labels))
        for _ in range(0 if asked.message else _TRIES):
            asked = self._sent(asked)
            if asked.warned or asked.status >= 400 or not asked.status:
                break
        return asked

    def _sent(self, asked: Asked) -> Asked:
        path = f"/apis/apps/v1/namespaces/{asked.namespace}/deployments?dryRun=All&fieldManager={_NAME}"
        try:
            answer = self._server.send("POST", path, _DEPLOYMENT)
        except ClusterError as error:
            return replace(asked, message=str(error))
        message = str(at(answer.content, "message"))
        return replace(asked, status=answer.status, message=message, warned=bool(_WARNING.search(answer.warnings)))

    def _left_out(self, labels: Mapping[str, str]) -> str:
        """Why the API server does not ask about the Deployment; empty if it does."""
        namespaces = selector_of(at(self._webhook, "namespaceSelector", default=None))
        if namespaces is not None and not namespaces.matches(labels):
            return f"its namespaceSelector leaves out namespace {_NAMESPACE}"
        objects = selector_of(at(self._webhook, "objectSelector", default=None))
        if objects is not None and not objects.matches(_LABELS):
            return "its objectSelector leaves out objects without your labels"
        own = [at(each, "name") for each in at(self._webhook, "matchConditions", default=())]
        if own := [each for each in own if each not in _CONDITIONS]:
            return f"its matchCondition {own[0]} may leave the object out"
        return ""

    def _warns(self, labels: Mapping[str, str]) -> bool | None:
        """Whether the policy gives a warning or a denial for the Deployment; None if the policy is not known."""
        policy, rule = self._facts.policy, BY_ID[_RULE]
        if policy is None:
            return None
        target = MatchedObject(
            namespace=_NAMESPACE, namespace_labels=labels, kind="Deployment", name=_NAME, labels=_LABELS
        )
        mode = mode_for(policy, rule.id, rule.mode, rule.since).capped(ceiling_for(policy, _NAMESPACE, labels))
        return mode.rank >= Mode.WARN.rank and not exemption_for(
            policy, rule.id, target, self._facts.now.date().isoformat()
        )


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
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }
                ],
            },
        },
    },
}
