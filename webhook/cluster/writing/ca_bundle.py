"""Write the caBundle and the missing rules into the two webhook configurations.

The API server accepts any caBundle, and silently skips the webhook if the bundle is wrong. So evenspread parses a
bundle before writing it, and compares certificates. Under failurePolicy Fail the chart renders the rules as an
annotation, and evenspread writes them into the field later. So a configuration refuses nothing before the API server
can verify evenspread.

evenspread writes the caBundle and the rules without an owner in managedFields. So an upgrade, a rollback or a GitOps
tool does not remove them. A tool with its own caBundle or rules gets no conflict.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus

from msgspec import Struct

from certs.authority import CertificateError
from certs.rotation import certificates_in
from webhook.cluster.connection import USER_AGENT, ApiServer, JsonObject
from webhook.cluster.errors import RefusedError
from webhook.core.api.well_known import RULES_ANNOTATION

KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_GROUP = "/apis/admissionregistration.k8s.io/v1"
# A failed `test` of a JSON Patch, or an outdated version: another client has changed the object meanwhile.
_CHANGED = (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)


class Completed(Struct, frozen=True, kw_only=True):
    """The result of `complete`: kinds of webhook configurations, by outcome.

    Attributes:
        written: The kinds whose configuration was changed. Empty if nothing was missing.
        absent: The kinds without a configuration of this name. A release may have one kind or none.
        bare: The kinds without a caBundle. Another program fills it in.
        inert: The kinds still without rules, for lack of a ready replica or a caBundle.
    """

    written: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()


def collection(kind: str) -> str:
    """Return the path of all webhook configurations of a kind."""
    return f"{_GROUP}/{kind.lower()}s"


def complete(
    server: ApiServer, name: str, trusted: Sequence[bytes] | None, *, keeping: bool = False, serving: Callable[[], bool]
) -> Completed:
    """Complete every webhook in the configurations of this name.

    Args:
        server: The API server.
        name: The name of both configurations.
        trusted: The certificates for the caBundle, in PEM. None leaves the caBundle to another program.
        keeping: Whether to keep the certificates already in the caBundle.
        serving: Whether replicas are ready. Rules are added to a configuration without rules only if this returns true.

    Raises:
        CertificateError: The bundle holds no certificate.
        ClusterError: The API server refused a configuration. The others were still completed.
    """
    wanted = None if trusted is None else certificates_in(b"".join(trusted))
    done: dict[str, tuple[str, ...]] = {}
    refused = None
    for kind in KINDS:
        try:
            for outcome in _complete_kind(server, kind, name, wanted, keeping=keeping, serving=serving):
                done[outcome] = (*done.get(outcome, ()), kind)
        except RefusedError as error:
            refused = error
    if refused is not None:
        raise refused
    return Completed(**done)


def _complete_kind(  # noqa: PLR0913 those of `complete`, for one kind
    server: ApiServer,
    kind: str,
    name: str,
    wanted: tuple[bytes, ...] | None,
    *,
    keeping: bool,
    serving: Callable[[], bool],
) -> Iterator[str]:
    """Add the missing caBundle and rules to the webhook configuration of this kind.

    Yields the outcomes: names of fields of `Completed` that get this kind.
    """
    path, title = f"{collection(kind)}/{name}", f"{kind} {name}"
    answer = server.send("GET", path)
    if answer.status == HTTPStatus.NOT_FOUND:
        yield "absent"
        return
    content = answer.accepted(title).content
    patch, outcomes = list[dict[str, object]](), set[str]()
    rules = _annotated_rules(content, title)
    for number, webhook in _service_webhooks(content):
        present = _certificates(webhook["clientConfig"])
        if wanted is not None and not ({*wanted} <= {*present} if keeping else {*wanted} == {*present}):
            bundle = tuple(dict.fromkeys((*wanted, *present))) if keeping else wanted
            encoded = base64.b64encode(b"".join(bundle)).decode()
            patch.append({"op": "add", "path": f"/webhooks/{number}/clientConfig/caBundle", "value": encoded})
        elif not present:
            outcomes.add("bare")
        if rules is not None and rules != webhook.get("rules"):
            if (present or wanted) and (webhook.get("rules") or serving()):
                patch.append({"op": "add", "path": f"/webhooks/{number}/rules", "value": rules})
            else:
                outcomes.add("inert")
    if patch:
        outcomes.add("written")
        content = _apply_patch(server, path, title, content, patch)
    _disown(server, path, title, content)
    yield from outcomes


def _apply_patch(
    server: ApiServer, path: str, title: str, content: JsonObject, patch: Sequence[JsonObject]
) -> JsonObject:
    """Apply a JSON Patch. Returns the stored object, or {} if the object has changed since ``content`` was read."""
    # The patch refers to webhooks and owners by index, which is valid only in this version.
    version = {"op": "test", "path": "/metadata/resourceVersion", "value": content["metadata"]["resourceVersion"]}
    answer = server.send("PATCH", path, [version, *patch], media="application/json-patch+json")
    return {} if answer.status in _CHANGED else answer.accepted(title).content


def _disown(server: ApiServer, path: str, title: str, content: JsonObject) -> None:
    """Remove evenspread from the field managers of the object.

    Source: apimachinery pkg/util/managedfields/internal/fieldmanager.go ``Update``: the API server stores the
        managedFields of the update.
    """
    owners = content.get("metadata", {}).get("managedFields") or ()
    ours = [number for number, owner in enumerate(owners) if owner.get("manager") == USER_AGENT]
    if ours and len(ours) < len(owners):
        patch = [{"op": "remove", "path": f"/metadata/managedFields/{number}"} for number in reversed(ours)]
        _apply_patch(server, path, title, content, patch)


def _annotated_rules(configuration: JsonObject, title: str) -> list[object] | None:
    """Return the webhook rules stored in the annotation of a webhook configuration.

    None without the annotation: the chart has then written the rules into the ``rules`` field.
    """
    text = (configuration["metadata"].get("annotations") or {}).get(RULES_ANNOTATION)
    if text is None:
        return None
    try:
        rules = json.loads(text)
    except ValueError:
        rules = None
    if not isinstance(rules, list):
        raise RefusedError(0, f"{title}: the annotation {RULES_ANNOTATION} must be a JSON list")
    return rules


def _service_webhooks(configuration: JsonObject) -> Iterator[tuple[int, JsonObject]]:
    """Yield each webhook called by a Service, with its index."""
    for number, webhook in enumerate(configuration.get("webhooks") or ()):
        if "service" in (webhook.get("clientConfig") or {}):
            yield number, webhook


def _certificates(config: JsonObject) -> tuple[bytes, ...]:
    """Return the certificates in a caBundle. Empty for anything else."""
    try:
        return certificates_in(base64.b64decode(config.get("caBundle") or "", validate=True))
    except (binascii.Error, CertificateError):
        return ()
