"""Read the chart's bindings of admission policies, and write the policies."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from webhook.cluster.connection import ApiServer, JsonObject
from webhook.core.admission_policies.installed import ChartBinding, read_binding
from webhook.core.admission_policies.policy_objects import GROUP

_GROUP_PATH = f"/apis/{GROUP}/v1"


def chart_binding(server: ApiServer, name: str) -> ChartBinding:
    """Return a ValidatingAdmissionPolicyBinding of the chart.

    Raises:
        ClusterError: The API server does not answer, or does not return the binding.
        ValueError: The binding is not of the chart, or its settings are invalid.
    """
    title = f"ValidatingAdmissionPolicyBinding {name}"
    stored = server.send("GET", f"{_GROUP_PATH}/validatingadmissionpolicybindings/{name}").accepted(title).content
    binding = read_binding(stored)
    if binding is None:
        raise ValueError(f"{title} is not of the chart")
    return binding


def put_policy(server: ApiServer, policy: Mapping[str, Any]) -> bool:
    """Write a ValidatingAdmissionPolicy, unless the stored one is equal. Returns whether anything was written.

    Raises ClusterError.
    """
    name = policy["metadata"]["name"]
    path, title = f"{_GROUP_PATH}/validatingadmissionpolicies/{name}", f"ValidatingAdmissionPolicy {name}"
    answer = server.send("GET", path)
    if answer.status == HTTPStatus.NOT_FOUND:
        # Server-side apply creates it by a role for this name. RBAC cannot limit POST to a name.
        server.apply(path, policy).accepted(title)
        return True
    stored = answer.accepted(title).content
    if _is_equal(stored, policy):
        return False
    # An update also removes conditions that others have added. Server-side apply would keep them.
    metadata = {**stored["metadata"], **policy["metadata"]}
    metadata["labels"] = {**(stored["metadata"].get("labels") or {}), **policy["metadata"]["labels"]}
    server.send("PUT", path, {**policy, "metadata": metadata}).accepted(title)
    return True


def _is_equal(stored: JsonObject, policy: Mapping[str, Any]) -> bool:
    meta, own = stored["metadata"], policy["metadata"]
    labelled = own["labels"].items() <= (meta.get("labels") or {}).items()
    return labelled and (meta.get("ownerReferences"), stored["spec"]) == (own["ownerReferences"], policy["spec"])
