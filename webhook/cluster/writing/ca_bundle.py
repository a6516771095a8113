"""The CAs that the API server trusts when it calls us: the caBundle of our two webhook configurations, by name.

The API server takes anything for a caBundle, and would then go on without us in silence: what is written is parsed
first, and what stands there is compared as certificates. Everything else in the configurations is somebody else's.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from certs.authority import CertificateError
from certs.rotation import certificates_in
from webhook.cluster.connection import ApiServer, RefusedError

_KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_GROUP = "/apis/admissionregistration.k8s.io/v1"
_ABSENT = 404
# A `test` of a JSON Patch that failed, or a version that is gone: somebody has changed it meanwhile.
_CHANGED = (409, 422)


def publish(server: ApiServer, name: str, bundle: bytes) -> int:
    """Make the bundle that of every webhook in our configurations.

    Shape: returns how many configurations had to be written; 0 says that all had it already. One that does not exist
    needs none: the release may have only one, or have switched both off.
    Errors: CertificateError for a bundle that holds no certificate; ClusterError, after each configuration was tried.
    """
    wanted = frozenset(certificates_in(bundle))
    encoded = base64.b64encode(bundle).decode()
    written, refused = 0, None
    for kind in _KINDS:
        try:
            written += _published(server, kind, name, wanted, encoded)
        except RefusedError as error:
            refused = error
    if refused is not None:
        raise refused
    return written


def _published(server: ApiServer, kind: str, name: str, wanted: frozenset[bytes], encoded: str) -> bool:
    path = f"{_GROUP}/{kind.lower()}s/{name}"
    answer = server.ask("GET", path)
    if answer.status == _ABSENT:
        return False
    if answer.status != 200:
        raise RefusedError(answer.status, f"{kind} {name}: {answer.content.get('message', '')}")
    wrong = [number for number, config in _called(answer.content) if _trusted(config) != wanted]
    if not wrong:
        return False
    version = answer.content["metadata"]["resourceVersion"]
    # Webhooks are named by their place in the list, which is this one only in this version.
    patch = [{"op": "test", "path": "/metadata/resourceVersion", "value": version}]
    patch += [{"op": "add", "path": f"/webhooks/{number}/clientConfig/caBundle", "value": encoded} for number in wrong]
    answer = server.ask("PATCH", path, patch, media="application/json-patch+json")
    if answer.status not in {200, *_CHANGED}:
        raise RefusedError(answer.status, f"{kind} {name}: {answer.content.get('message', '')}")
    return True


def _called(configuration: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """How each webhook is reached that is called by a Service, with its place in the list."""
    for number, webhook in enumerate(configuration.get("webhooks") or ()):
        config = webhook.get("clientConfig") or {}
        if "service" in config:
            yield number, config


def _trusted(config: Mapping[str, Any]) -> frozenset[bytes]:
    """The certificates in a caBundle; none where it holds anything else."""
    try:
        return frozenset(certificates_in(base64.b64decode(config.get("caBundle") or "", validate=True)))
    except (binascii.Error, CertificateError):
        return frozenset()
