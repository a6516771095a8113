"""Webhook configurations with a URL, held for the length of a test and known to be in effect."""

import base64
import contextlib
import functools
import itertools
from typing import NamedTuple

from e2e.controlplane.up import ControlPlane
from e2e.objects import path
from e2e.waiting import eventually

GROUP = "/apis/admissionregistration.k8s.io/v1"
NUMBERS = itertools.count(1)
TIMEOUT = 2  # seconds, as the chart has it
KINDS = {"validate": "ValidatingWebhookConfiguration", "mutate": "MutatingWebhookConfiguration"}

# What the API server is asked to send: far more than anyone registers, so that what is not ours is seen to be let by.
# A namespace selector cannot keep out what belongs to no namespace, such as a node's status.
EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}


class Server(NamedTuple):
    url: str  # without a path
    authority: bytes  # PEM

    def client_config(self, route: str) -> dict:
        return {"url": f"{self.url}/{route}", "caBundle": base64.b64encode(self.authority).decode()}


class Service(NamedTuple):
    """A webhook that is reached as in a cluster."""

    namespace: str
    name: str
    authority: bytes  # PEM

    def client_config(self, route: str) -> dict:
        service = {"namespace": self.namespace, "name": self.name, "path": f"/{route}"}
        return {"service": service, "caBundle": base64.b64encode(self.authority).decode()}


@contextlib.contextmanager
def registered(
    plane: ControlPlane,
    namespace: str,
    server: Server | Service,
    *,
    policy: str = "Fail",
    routes: tuple[str, ...] = ("validate", "mutate"),
    order: str = "m",
    scope: str = "*",
):
    """Both routes for everything in one namespace, and with the scope `*` for what belongs to none.

    `Fail`, so that an error cannot hide behind the fail-open.
    Mutating webhooks are called in the order of their configurations' names, which begin with `order`.
    """
    names = {route: f"{order}-{route}-{next(NUMBERS)}" for route in routes}
    created = []
    try:
        for route, name in names.items():
            collection = f"{GROUP}/{KINDS[route].lower()}s"
            plane.api.request("POST", collection, _configuration(route, name, namespace, server, policy, scope=scope))
            created.append(f"{collection}/{name}")
        for name in names.values():
            eventually(functools.partial(_in_effect, plane, namespace, name), every=0.05)
        yield
    finally:
        for address in created:
            plane.api.request("DELETE", address)
        for name in names.values():
            eventually(functools.partial(_out_of_effect, plane, namespace, name), every=0.05)


def _configuration(route: str, name: str, namespace: str, server: Server | Service, policy: str, *, scope: str) -> dict:
    common = {
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "clientConfig": server.client_config(route),
        "timeoutSeconds": TIMEOUT,
        "rules": [EVERYTHING | {"scope": scope}],
    }
    webhook = {
        "name": f"{route}.evenspread.io",
        "failurePolicy": policy,
        "matchConditions": [{"name": "not-the-probe", "expression": "request.resource.resource != 'configmaps'"}],
        **common,
    }
    if route == "mutate":
        webhook["reinvocationPolicy"] = "IfNeeded"
    # A condition that fails under Fail is a 403 without a call: it shows that this configuration is in effect.
    probe = {
        "name": f"{route}.probe.evenspread.io",
        "failurePolicy": "Fail",
        "matchConditions": [{"name": "probe", "expression": "object.data.absent == ''"}],
        "objectSelector": {"matchLabels": {"probe": name}},
        **common,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": KINDS[route],
        "metadata": {"name": name},
        "webhooks": [webhook, probe],
    }


def _in_effect(plane: ControlPlane, namespace: str, name: str) -> bool:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe", "labels": {"probe": name}}}
    return plane.api.send("POST", f"{path('ConfigMap', namespace)}?dryRun=All", body).status == 403


def _out_of_effect(plane: ControlPlane, namespace: str, name: str) -> bool:
    return not _in_effect(plane, namespace, name)
