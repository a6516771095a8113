"""What the chart leaves out of our two webhook configurations, by name: the caBundle, and rules that may refuse writes.

The API server takes anything for a caBundle, and would then go on without us in silence: what is written is parsed
first, and what stands there is compared as certificates. Under failurePolicy Fail the chart renders the rules as an
annotation instead of a field, so that a configuration refuses nothing before the API server can verify us.

Both fields are left without an owner in managedFields. An upgrade, a rollback or a GitOps tool that does not render
them leaves them alone, and one that does render them meets no conflict.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from certs.authority import CertificateError
from certs.rotation import certificates_in
from webhook.cluster.connection import USER_AGENT, ApiServer, RefusedError
from webhook.core.api.well_known import RULES_ANNOTATION

KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_GROUP = "/apis/admissionregistration.k8s.io/v1"
_ABSENT = 404
# A `test` of a JSON Patch that failed, or a version that is gone: somebody has changed it meanwhile.
_CHANGED = (409, 422)


class Completed(Struct, frozen=True, kw_only=True):
    """What was found and done.

    Args:
        written: The kinds that were written; empty says that all were complete.
        absent: The kinds without such a configuration. A release may have only one, or have switched both off.
        bare: The kinds that lack a caBundle, which somebody else fills in.
        inert: The kinds that have no rules yet, since no replica could answer.
    """

    written: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()


def collection(kind: str) -> str:
    """The path of all webhook configurations of a kind."""
    return f"{_GROUP}/{kind.lower()}s"


def complete(
    server: ApiServer, name: str, trusted: Sequence[bytes] | None, *, keeping: bool = False, serving: Callable[[], bool]
) -> Completed:
    """Complete every webhook in our configurations.

    Args:
        server: Has the configurations.
        name: Theirs.
        trusted: The certificates that the API server must trust, in PEM; None where somebody else fills them in.
        keeping: Whether certificates that are trusted already stay.
        serving: Whether replicas answer. Rules are added to a configuration without any only then.

    Raises:
        CertificateError: The bundle holds no certificate.
        ClusterError: After each configuration was tried.
    """
    wanted = None if trusted is None else certificates_in(b"".join(trusted))
    done: dict[str, tuple[str, ...]] = {}
    refused = None
    for kind in KINDS:
        try:
            for outcome in _completed(server, kind, name, wanted, keeping=keeping, serving=serving):
                done[outcome] = (*done.get(outcome, ()), kind)
        except RefusedError as error:
            refused = error
    if refused is not None:
        raise refused
    return Completed(**done)


def _completed(  # noqa: PLR0913 those of `complete`, for one kind
    server: ApiServer,
    kind: str,
    name: str,
    wanted: tuple[bytes, ...] | None,
    *,
    keeping: bool,
    serving: Callable[[], bool],
) -> Iterator[str]:
    """Complete one configuration; yields the fields of `Completed` that its kind belongs to."""
    path, title = f"{collection(kind)}/{name}", f"{kind} {name}"
    answer = server.send("GET", path)
    if answer.status == _ABSENT:
        yield "absent"
        return
    content = answer.accepted(title).content
    patch, outcomes = list[dict[str, Any]](), set[str]()
    rules = _annotated_rules(content, title)
    for number, webhook in _called(content):
        found = _certificates(webhook["clientConfig"])
        if wanted is not None and not ({*wanted} <= {*found} if keeping else {*wanted} == {*found}):
            bundle = tuple(dict.fromkeys((*wanted, *found))) if keeping else wanted
            encoded = base64.b64encode(b"".join(bundle)).decode()
            patch.append({"op": "add", "path": f"/webhooks/{number}/clientConfig/caBundle", "value": encoded})
        elif not found:
            outcomes.add("bare")
        if rules is not None and rules != webhook.get("rules"):
            if (found or wanted) and (webhook.get("rules") or serving()):
                patch.append({"op": "add", "path": f"/webhooks/{number}/rules", "value": rules})
            else:
                outcomes.add("inert")
    if patch:
        outcomes.add("written")
        content = _patched(server, path, title, content, patch)
    _disowned(server, path, title, content)
    yield from outcomes


def _patched(
    server: ApiServer, path: str, title: str, content: Mapping[str, Any], patch: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Apply a JSON Patch to this version of an object; what is stored then, or nothing if it is another version."""
    # Webhooks and owners are named by their place in a list, which is this one only in this version.
    version = {"op": "test", "path": "/metadata/resourceVersion", "value": content["metadata"]["resourceVersion"]}
    answer = server.send("PATCH", path, [version, *patch], media="application/json-patch+json")
    return {} if answer.status in _CHANGED else answer.accepted(title).content


def _disowned(server: ApiServer, path: str, title: str, content: Mapping[str, Any]) -> None:
    """Give up the ownership of what we have written.

    Source: apimachinery pkg/util/managedfields/internal/fieldmanager.go Update: managedFields of an update are taken.
    """
    owners = content.get("metadata", {}).get("managedFields") or ()
    ours = [number for number, owner in enumerate(owners) if owner.get("manager") == USER_AGENT]
    if ours and len(ours) < len(owners):
        patch = [{"op": "remove", "path": f"/metadata/managedFields/{number}"} for number in reversed(ours)]
        _patched(server, path, title, content, patch)


def _annotated_rules(configuration: Mapping[str, Any], title: str) -> list[Any] | None:
    """The rules that the chart leaves to us; None where it renders them itself."""
    text = (configuration["metadata"].get("annotations") or {}).get(RULES_ANNOTATION)
    if text is None:
        return None
    try:
        rules = json.loads(text)
    except ValueError:
        rules = None
    if not isinstance(rules, list):
        raise RefusedError(0, f"{title}: the annotation {RULES_ANNOTATION} is no list in JSON")
    return rules


def _called(configuration: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each webhook that is called by a Service, with its place in the list."""
    for number, webhook in enumerate(configuration.get("webhooks") or ()):
        if "service" in (webhook.get("clientConfig") or {}):
            yield number, webhook


def _certificates(config: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The certificates in a caBundle; none where it holds anything else."""
    try:
        return certificates_in(base64.b64decode(config.get("caBundle") or "", validate=True))
    except (binascii.Error, CertificateError):
        return ()
