"""Judge the served certificate, and whether the CA in the webhook configurations is the one that signed it.

A certificate is judged by its own life: renewers replace it when two thirds are over.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from certs.authority import CertificateError, Pair, certificate_of, covers_name, key_fault, signed_by
from certs.rotation import certificates_in, read_secret_data
from webhook.cli.commands.doctor.diagnosis import Diagnosis, helm_upgrade, ok, problem, unanswered, unknown
from webhook.cli.commands.doctor.facts import Facts, Object, Read, Unread, at, configured, items, option
from webhook.core.api.well_known import APP_COMPONENT

# Half of the time between its renewal and its end. People who renew by hand get two weeks at most.
_LATE, _LONGEST = 6, timedelta(days=14)
_INJECTED = "cert-manager.io/inject-ca-from"


def certificates(facts: Facts) -> Iterator[Diagnosis]:
    """Every line about certificates and CAs."""
    if not facts.service_name:
        return
    yield from _bundles(facts)
    if facts.authority_name:
        yield _authority(facts)
    if facts.tls_name:
        yield _secret(facts)
    yield from _served(facts)


def _untrusted(facts: Facts) -> str:
    return f"a new connection to the webhook fails; {unanswered(facts)}"


def _bundles(facts: Facts) -> Iterator[Diagnosis]:
    """A line for each webhook: is its caBundle the CA that signs?"""
    signing = _signing(facts)
    for title, webhook in configured(facts):
        where = f"{title}, {at(webhook, 'name')}"
        fault = _bundle_fault(_decoded(at(webhook, "clientConfig", "caBundle")), facts, signing)
        if fault:
            yield problem("caBundle", where, fault, _untrusted(facts), _bundle_fix(facts))
        elif isinstance(signing, Unread):
            yield unknown("caBundle", where, signing, "whether it is the CA that signs what is served")
        else:
            yield ok("caBundle", where, "is the CA of what is served")


def _signing(facts: Facts) -> Read[bytes]:
    """A certificate that the bundle must trust: the leaf of the Secret, or our own CA."""
    if isinstance(facts.tls, Mapping):
        return _value(facts.tls, "tls.crt") or Unread("the Secret has no tls.crt")
    if isinstance(facts.authority, Mapping):
        held = read_secret_data(
            {key: _decoded(value) for key, value in at(facts.authority, "data", default={}).items()}
        )
        return Unread("the Secret holds no CA yet") if held is None else held.signing.certificate
    unread = next((each for each in (facts.tls, facts.authority) if isinstance(each, Unread)), None)
    gone = facts.tls_name or facts.authority_name
    return unread or Unread(f"there is no Secret {gone}" if gone else "the Deployment names no Secret")


def _bundle_fault(bundle: bytes, facts: Facts, signing: Read[bytes]) -> str:
    try:
        trusted = certificates_in(bundle)
    except CertificateError:
        return "is no certificate" if bundle else "is empty"
    if isinstance(signing, Unread):
        return ""
    if facts.authority_name and not facts.tls_name:
        return "" if certificates_in(signing)[0] in trusted else "does not hold the CA that signs"
    return "" if signed_by(signing, bundle) else "did not sign the certificate that is served"


def _by_cert_manager(facts: Facts) -> bool:
    return any(at(each, "metadata", "annotations", _INJECTED) for each in items(facts.configurations))


def _bundle_fix(facts: Facts) -> str:
    """What fills in the CA: cert-manager's injector, our controller, or Helm."""
    if _by_cert_manager(facts):
        return "kubectl -n cert-manager rollout restart deployment/cert-manager-cainjector"
    if option(facts.deployment, "ca-secret"):
        return f"kubectl -n {facts.namespace} rollout restart deployment -l {APP_COMPONENT}=controller"
    return helm_upgrade(facts, "--force-conflicts")


def _authority(facts: Facts) -> Diagnosis:
    """The line about the Secret with our own CA."""
    where, lost = f"Secret {facts.authority_name}", "pods cannot renew what they serve, and new pods do not start"
    if isinstance(facts.authority, Unread):
        return unknown("CA", where, facts.authority, "whether the CA is in time for its end")
    if facts.authority is None:
        return problem("CA", where, "is not there", lost, helm_upgrade(facts))
    held = read_secret_data({key: _decoded(value) for key, value in at(facts.authority, "data", default={}).items()})
    if held is None:
        logs = f"kubectl -n {facts.namespace} logs deployment/{facts.service_name} --tail=20"
        return problem("CA", where, "holds no CA yet; the first pod of the webhook makes it", lost, logs)
    if fault := _time_fault(held.signing.certificate, facts.now):
        restart = f"kubectl -n {facts.namespace} rollout restart deployment -l {APP_COMPONENT}=controller"
        return problem("CA", where, f"{fault}, and the controller has not replaced it", _untrusted(facts), restart)
    return ok("CA", where, f"until {_moment(certificate_of(held.signing.certificate).not_valid_after_utc)}")


def _secret(facts: Facts) -> Diagnosis:
    """The line about the Secret with the served certificate."""
    where, name = f"Secret {facts.namespace}/{facts.tls_name}", f"{facts.service_name}.{facts.namespace}.svc"
    if isinstance(facts.tls, Unread):
        return unknown("certificate", where, facts.tls, "whether its name and key are right")
    if facts.tls is None:
        return problem("certificate", where, "is not there", "new pods of the webhook wait for it", _secret_fix(facts))
    certificate = _value(facts.tls, "tls.crt")
    fault = _pair_fault(facts.tls) or _own_fault(certificate, name, facts) or _renewer_fault(facts)
    if fault:
        return problem("certificate", where, fault, _untrusted(facts), _secret_fix(facts))
    return ok("certificate", where, f"is for {name}, until {_moment(certificate_of(certificate).not_valid_after_utc)}")


def _pair_fault(secret: Object) -> str:
    lacking = [key for key in ("tls.crt", "tls.key") if not _value(secret, key)]
    if lacking:
        return f"has no {' and no '.join(lacking)}"
    return key_fault(Pair(certificate=_value(secret, "tls.crt"), key=_value(secret, "tls.key"))) or ""


def _own_fault(certificate: bytes, name: str, facts: Facts) -> str:
    """What is wrong with a certificate whoever signed it."""
    fault = _time_fault(certificate, facts.now, at(facts.certificate, "status", "renewalTime"))
    return fault or ("" if covers_name(certificate, name) else f"is not for {name}")


def _time_fault(certificate: bytes, now: datetime, renewal: str = "") -> str:
    found = certificate_of(certificate)
    return _late(found.not_valid_before_utc, found.not_valid_after_utc, now, renewal)


def _late(begins: datetime, ends: datetime, now: datetime, renewal: str = "") -> str:
    """Why a certificate is not valid, or is overdue for its renewal; empty if neither.

    Args:
        begins: From when on it is valid.
        ends: When it ends.
        now: The API server's time.
        renewal: When its renewer replaces it, in ISO form, where that is known.
    """
    if now >= ends:
        return f"ended at {_moment(ends)}"
    if now < begins:
        return f"begins at {_moment(begins)} only"
    left = min((ends - begins) / _LATE, _LONGEST)
    if renewal:
        left = min(left, (ends - datetime.fromisoformat(renewal)) / 2)
    return f"ends at {_moment(ends)} and was not renewed" if ends - now < left else ""


def _renewer_fault(facts: Facts) -> str:
    """What cert-manager reports of the Certificate."""
    for each in at(facts.certificate, "status", "conditions", default=()):
        if at(each, "type") == "Ready" and at(each, "status") == "False":
            return f"cert-manager: {at(each, 'message') or at(each, 'reason')}"
    return ""


def _secret_fix(facts: Facts) -> str:
    """The command that replaces the certificate. Without cert-manager, you replace it by hand."""
    if _by_cert_manager(facts):
        if facts.tls is None:
            return "kubectl -n cert-manager rollout restart deployment/cert-manager  # it issues the Secret again"
        return f"kubectl -n {facts.namespace} delete secret {facts.tls_name}  # cert-manager issues it again"
    made = f"kubectl -n {facts.namespace} create secret generic {facts.tls_name}"
    files = " ".join(f"--from-file={key}" for key in ("tls.crt", "tls.key", "ca.crt"))
    return "\n".join(
        (
            f"# make a certificate for {facts.service_name}.{facts.namespace}.svc as the chart's README shows, then",
            f"{made} {files} --dry-run=client -o yaml | kubectl apply -f -",
            helm_upgrade(facts, "--force-conflicts"),
        )
    )


def _served(facts: Facts) -> Iterator[Diagnosis]:
    """A line for each pod, about the certificate that its metrics name."""
    for each in facts.replicas:
        if each.ends is None:
            continue
        where, ends = f"Pod {facts.namespace}/{each.name}", datetime.fromtimestamp(each.ends, UTC)
        # An older release has no metric of its begin: of that one only the end counts.
        begins = datetime.fromtimestamp(each.begins, UTC) if each.begins else min(facts.now, ends)
        fault = _late(begins, ends, facts.now)
        if fault:
            fix = f"kubectl -n {facts.namespace} rollout restart deployment/{facts.service_name}"
            yield problem("served certificate", where, f"serves a certificate that {fault}", _untrusted(facts), fix)
        else:
            yield ok("served certificate", where, f"until {_moment(ends)}")


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _value(secret: Object, key: str) -> bytes:
    return _decoded(at(secret, "data", key))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
