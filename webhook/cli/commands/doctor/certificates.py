"""Check the served certificate, its Secret, and the CA of the webhooks.

The CA is the caBundle in the webhook configurations. A certificate is renewed after two thirds of its life.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from certs.authority import CertificateError, Pair, certificate_of, covers_name, key_fault, signed_by
from certs.rotation import certificates_in, read_secret_data
from webhook.cli.commands.doctor.api_fields import Object, at, option
from webhook.cli.commands.doctor.diagnosis import Diagnosis, helm_upgrade, ok, problem, unanswered, unknown
from webhook.cli.commands.doctor.facts import InstallationFacts, Read, Unread, configured, items
from webhook.core.api.well_known import APP_COMPONENT

# A certificate is overdue in the last sixth of its life: half of the time after its renewal is due.
# People who renew by hand need two weeks at most.
_LATE, _LONGEST = 6, timedelta(days=14)
_INJECTED = "cert-manager.io/inject-ca-from"


def certificates(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield all lines about certificates and CAs."""
    if not facts.service_name:
        return
    yield from _bundles(facts)
    if facts.authority_name:
        yield _authority(facts)
    if facts.tls_name:
        yield _secret(facts)
    yield from _served(facts)


def _untrusted(facts: InstallationFacts) -> str:
    return f"New connections to the webhook fail. {unanswered(facts)}"


def _bundles(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield a line for each webhook: whether the webhook's caBundle has the CA of the served certificate."""
    signing = _signing(facts)
    for title, webhook in configured(facts):
        where = f"{title}, {at(webhook, 'name')}"
        fault = _bundle_fault(_decoded(at(webhook, "clientConfig", "caBundle")), facts, signing)
        if fault:
            yield problem("caBundle", where, fault, _untrusted(facts), _bundle_fix(facts))
        elif isinstance(signing, Unread):
            yield unknown("caBundle", where, signing, "whether the caBundle signed the served certificate")
        else:
            yield ok("caBundle", where, "signed the served certificate")


def _signing(facts: InstallationFacts) -> Read[bytes]:
    """Return the served certificate in the Secret, else evenspread's own CA, to compare with each caBundle."""
    if isinstance(facts.tls, Mapping):
        return _value(facts.tls, "tls.crt") or Unread("the Secret has no tls.crt")
    if isinstance(facts.authority, Mapping):
        return _signing_authority(facts.authority) or Unread("the Secret contains no CA yet")
    unread = next((secret for secret in (facts.tls, facts.authority) if isinstance(secret, Unread)), None)
    gone = facts.tls_name or facts.authority_name
    return unread or Unread(f"Secret {gone} does not exist" if gone else "the Deployment names no Secret")


def _bundle_fault(bundle: bytes, facts: InstallationFacts, signing: Read[bytes]) -> str:
    try:
        trusted = certificates_in(bundle)
    except CertificateError:
        return "is not a certificate" if bundle else "is empty"
    if isinstance(signing, Unread):
        return ""
    if facts.authority_name and not facts.tls_name:
        return "" if certificates_in(signing)[0] in trusted else "does not contain the signing CA"
    return "" if signed_by(signing, bundle) else "did not sign the served certificate"


def _by_cert_manager(facts: InstallationFacts) -> bool:
    return any(at(configuration, "metadata", "annotations", _INJECTED) for configuration in items(facts.configurations))


def _bundle_fix(facts: InstallationFacts) -> str:
    """Return the command to repair the caBundle: restart cert-manager's injector or the controller, or Helm."""
    if _by_cert_manager(facts):
        return "kubectl -n cert-manager rollout restart deployment/cert-manager-cainjector"
    if option(facts.deployment, "ca-secret"):
        return f"kubectl -n {facts.namespace} rollout restart deployment -l {APP_COMPONENT}=controller"
    return helm_upgrade(facts, "--force-conflicts")


def _authority(facts: InstallationFacts) -> Diagnosis:
    """The line about the Secret with evenspread's own CA."""
    where, lost = f"Secret {facts.authority_name}", "Pods cannot renew their certificates, and new pods do not start"
    if isinstance(facts.authority, Unread):
        return unknown("CA", where, facts.authority, "whether the CA was replaced in time")
    if facts.authority is None:
        return problem("CA", where, "does not exist", lost, helm_upgrade(facts))
    signing = _signing_authority(facts.authority)
    if not signing:
        logs = f"kubectl -n {facts.namespace} logs deployment/{facts.service_name} --tail=20"
        return problem("CA", where, "contains no CA yet; the first webhook pod creates it", lost, logs)
    if fault := _time_fault(signing, facts.now):
        restart = f"kubectl -n {facts.namespace} rollout restart deployment -l {APP_COMPONENT}=controller"
        return problem("CA", where, f"{fault}, and the controller has not replaced it", _untrusted(facts), restart)
    return ok("CA", where, f"is valid until {_moment(certificate_of(signing).not_valid_after_utc)}")


def _signing_authority(secret: Object) -> bytes:
    """The certificate of the signing CA in evenspread's own Secret. Empty if it contains none."""
    held = read_secret_data({key: _decoded(value) for key, value in at(secret, "data", default={}).items()})
    return b"" if held is None else held.signing.certificate


def _secret(facts: InstallationFacts) -> Diagnosis:
    """Return the diagnosis of the Secret with the webhook's serving certificate."""
    where, name = f"Secret {facts.namespace}/{facts.tls_name}", f"{facts.service_name}.{facts.namespace}.svc"
    if isinstance(facts.tls, Unread):
        return unknown("certificate", where, facts.tls, "whether its name and key are correct")
    if facts.tls is None:
        lost = "New pods of the webhook do not start without the Secret"
        return problem("certificate", where, "does not exist", lost, _secret_fix(facts))
    certificate = _value(facts.tls, "tls.crt")
    fault = _pair_fault(facts.tls) or _own_fault(certificate, name, facts) or _renewer_fault(facts)
    if fault:
        return problem("certificate", where, fault, _untrusted(facts), _secret_fix(facts))
    ends = _moment(certificate_of(certificate).not_valid_after_utc)
    return ok("certificate", where, f"is for {name} and valid until {ends}")


def _pair_fault(secret: Object) -> str:
    lacking = [key for key in ("tls.crt", "tls.key") if not _value(secret, key)]
    if lacking:
        return f"has no {' and no '.join(lacking)}"
    return key_fault(Pair(certificate=_value(secret, "tls.crt"), key=_value(secret, "tls.key"))) or ""


def _own_fault(certificate: bytes, name: str, facts: InstallationFacts) -> str:
    """Return a fault of a certificate's dates or DNS names. Empty without a fault."""
    fault = _time_fault(certificate, facts.now, at(facts.certificate, "status", "renewalTime"))
    return fault or ("" if covers_name(certificate, name) else f"is not for {name}")


def _time_fault(certificate: bytes, now: datetime, renewal: str = "") -> str:
    parsed = certificate_of(certificate)
    return _late(parsed.not_valid_before_utc, parsed.not_valid_after_utc, now, renewal)


def _late(begins: datetime, ends: datetime, now: datetime, renewal: str = "") -> str:
    """Why a certificate is invalid, or overdue for renewal. Empty if it is neither.

    Args:
        begins: Start of its validity.
        ends: End of its validity.
        now: The API server's time.
        renewal: ISO time of its planned renewal. Empty if unknown.
    """
    if now >= ends:
        return f"expired at {_moment(ends)}"
    if now < begins:
        return f"is not valid before {_moment(begins)}"
    left = min((ends - begins) / _LATE, _LONGEST)
    if renewal:
        left = min(left, (ends - datetime.fromisoformat(renewal)) / 2)
    return f"expires at {_moment(ends)} and was not renewed" if ends - now < left else ""


def _renewer_fault(facts: InstallationFacts) -> str:
    """Return cert-manager's error about the Certificate. Empty if the Certificate is ready."""
    for condition in at(facts.certificate, "status", "conditions", default=()):
        if at(condition, "type") == "Ready" and at(condition, "status") == "False":
            return f"cert-manager: {at(condition, 'message') or at(condition, 'reason')}"
    return ""


def _secret_fix(facts: InstallationFacts) -> str:
    """The command that replaces the certificate. Without cert-manager, you replace it by hand."""
    if _by_cert_manager(facts):
        if facts.tls is None:
            return "kubectl -n cert-manager rollout restart deployment/cert-manager  # it issues the Secret again"
        return f"kubectl -n {facts.namespace} delete secret {facts.tls_name}  # cert-manager issues it again"
    made = f"kubectl -n {facts.namespace} create secret generic {facts.tls_name}"
    files = " ".join(f"--from-file={key}" for key in ("tls.crt", "tls.key", "ca.crt"))
    return "\n".join(
        (
            f"# issue a certificate for {facts.service_name}.{facts.namespace}.svc (see the chart's README), then",
            f"{made} {files} --dry-run=client -o yaml | kubectl apply -f -",
            helm_upgrade(facts, "--force-conflicts"),
        )
    )


def _served(facts: InstallationFacts) -> Iterator[Diagnosis]:
    """Yield a line for each webhook pod: whether the certificate it serves is valid, from the dates in its metrics."""
    for replica in facts.replicas:
        if replica.ends is None:
            continue
        where, ends = f"Pod {facts.namespace}/{replica.name}", datetime.fromtimestamp(replica.ends, UTC)
        # Older releases have no metric for the start.
        begins = datetime.fromtimestamp(replica.begins, UTC) if replica.begins else min(facts.now, ends)
        fault = _late(begins, ends, facts.now)
        if fault:
            fix = f"kubectl -n {facts.namespace} rollout restart deployment/{facts.service_name}"
            yield problem("served certificate", where, f"its certificate {fault}", _untrusted(facts), fix)
        else:
            yield ok("served certificate", where, f"its certificate is valid until {_moment(ends)}")


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _value(secret: Object, key: str) -> bytes:
    return _decoded(at(secret, "data", key))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
