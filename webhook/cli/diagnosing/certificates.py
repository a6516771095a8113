"""Judge the served certificate, and whether the CA in the webhook configurations is the one that signed it."""

import base64
import binascii
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from certs.authority import CertificateError, Pair, certificate_of, expires, is_for, key_fault, signed_by
from certs.rotation import certificates_in, read
from webhook.cli.diagnosing.diagnosis import Diagnosis, State, helm_upgrade, unknown
from webhook.cli.diagnosing.facts import Configuration, Deployment, Facts, Read, Secret, Unread
from webhook.cli.diagnosing.registration import release_of
from webhook.core.api.well_known import APP_COMPONENT

# A leaf of a week is renewed two days and eight hours before its end.
_SOON = timedelta(days=2)
_SILENT = "the API server trusts nothing that is served, asks nobody, and goes on without (failurePolicy Ignore)"


def certificates(facts: Facts) -> Iterator[Diagnosis]:
    """Every line about certificates and CAs."""
    if not facts.service_name:
        return
    yield from _bundles(facts)
    if facts.tls is not None:
        yield from _secret(facts, facts.tls)
    yield from _served(facts)


def _bundles(facts: Facts) -> Iterator[Diagnosis]:
    """A line for each configuration: is its caBundle the CA that signs?"""
    signing = _signing(facts)
    for configuration in () if isinstance(facts.configurations, Unread) else facts.configurations:
        for each in configuration.webhooks:
            where = f"{configuration.title}, {each.name}"
            fault = _bundle_fault(_decoded(each.client_config.ca_bundle), facts, signing)
            if fault:
                yield Diagnosis(
                    check="caBundle",
                    state=State.PROBLEM,
                    where=where,
                    what=fault,
                    why=_SILENT,
                    fix=_bundle_fix(facts, configuration),
                )
            elif isinstance(signing, Unread):
                yield unknown("caBundle", where, signing, "whether it is the CA that signs what is served")
            else:
                yield Diagnosis(check="caBundle", state=State.OK, where=where, what="is the CA of what is served")


def _signing(facts: Facts) -> Read[bytes]:
    """A certificate that the bundle must trust: the leaf of the Secret, or our own CA."""
    if isinstance(facts.tls, Secret):
        return _value(facts.tls, "tls.crt") or Unread("the Secret has no tls.crt")
    if isinstance(facts.authority, Secret):
        held = read({key: _decoded(value) for key, value in facts.authority.data.items()})
        return Unread("the Secret holds no CA yet") if held is None else held.signing.certificate
    unread = next((each for each in (facts.tls, facts.authority) if isinstance(each, Unread)), None)
    return unread or Unread("the Deployment names no Secret that is there")


def _bundle_fault(bundle: bytes, facts: Facts, signing: Read[bytes]) -> str:
    try:
        trusted = certificates_in(bundle)
    except CertificateError:
        return "is no certificate" if bundle else "is empty"
    if isinstance(signing, Unread):
        return ""
    if isinstance(facts.authority, Secret) and not isinstance(facts.tls, Secret):
        return "" if certificates_in(signing)[0] in trusted else "does not hold the CA that signs"
    return "" if signed_by(signing, bundle) else "did not sign the certificate that is served"


def _bundle_fix(facts: Facts, configuration: Configuration) -> str:
    """What fills in the CA: cert-manager's injector, our controller, or Helm."""
    if "cert-manager.io/inject-ca-from" in configuration.metadata.annotations:
        return "kubectl -n cert-manager rollout restart deployment/cert-manager-cainjector"
    if isinstance(facts.deployment, Deployment) and facts.deployment.container.option("ca-secret"):
        return f"kubectl -n {facts.namespace} rollout restart deployment -l {APP_COMPONENT}=controller"
    return helm_upgrade(release_of(facts), facts.namespace, "--force-conflicts")


def _secret(facts: Facts, secret: Read[Secret]) -> Iterator[Diagnosis]:
    """The Secret with the served certificate: complete, a pair, of the right name, neither ended nor about to."""
    name = facts.service_name
    if isinstance(secret, Unread):
        where = f"the Secret in namespace {facts.namespace} with the certificate"
        yield unknown("certificate", where, secret, "whether its name and key are right")
        return
    where = f"Secret {facts.namespace}/{secret.metadata.name}"
    fault = _pair_fault(secret) or _own_fault(_value(secret, "tls.crt"), _name(facts), facts.now)
    if fault:
        yield Diagnosis(
            check="certificate",
            state=State.PROBLEM,
            where=where,
            what=fault,
            why=_SILENT,
            fix=_secret_fix(facts, secret.metadata.name),
        )
    else:
        ends = expires(_value(secret, "tls.crt")).date().isoformat()
        yield Diagnosis(
            check="certificate", state=State.OK, where=where, what=f"is for {name}.{facts.namespace}.svc, until {ends}"
        )


def _pair_fault(secret: Secret) -> str:
    lacking = [key for key in ("tls.crt", "tls.key") if not _value(secret, key)]
    if lacking:
        return f"has no {' and no '.join(lacking)}"
    return key_fault(Pair(certificate=_value(secret, "tls.crt"), key=_value(secret, "tls.key"))) or ""


def _own_fault(certificate: bytes, name: str, now: datetime) -> str:
    """What is wrong with a certificate whoever signed it."""
    found = certificate_of(certificate)
    if now >= found.not_valid_after_utc:
        return f"ended on {_day(found.not_valid_after_utc)}"
    if now < found.not_valid_before_utc:
        return f"begins on {_day(found.not_valid_before_utc)} only"
    if found.not_valid_after_utc - now < _SOON:
        return f"ends on {_day(found.not_valid_after_utc)}"
    return "" if is_for(certificate, name) else f"is not for {name}"


def _secret_fix(facts: Facts, name: str) -> str:
    """cert-manager is asked for another; what somebody made by hand, that one makes again."""
    deleted = f"kubectl -n {facts.namespace} delete secret {name}"
    if any(
        "cert-manager.io/inject-ca-from" in each.metadata.annotations
        for each in (() if isinstance(facts.configurations, Unread) else facts.configurations)
    ):
        return f"{deleted}  # cert-manager issues it anew"
    made = f"kubectl -n {facts.namespace} create secret generic {name}"
    files = " ".join(f"--from-file={key}" for key in ("tls.crt", "tls.key", "ca.crt"))
    return "\n".join(
        (
            f"# make a certificate for {_name(facts)} as the chart's README shows, then",
            f"{made} {files} --dry-run=client -o yaml | kubectl apply -f -",
            helm_upgrade(release_of(facts), facts.namespace, "--force-conflicts"),
        )
    )


def _served(facts: Facts) -> Iterator[Diagnosis]:
    """What replicas themselves say of the certificate that they serve."""
    for each in facts.replicas:
        if isinstance(each, Unread):
            where = f"replicas in namespace {facts.namespace}"
            yield unknown("served certificate", where, each, "what they serve, and whether they took the last policy")
            return
        if each.certificate_ends is None:
            continue
        ends = datetime.fromtimestamp(each.certificate_ends, UTC)
        late = ends - facts.now < timedelta(0)
        if late or ends - facts.now < _SOON:
            yield Diagnosis(
                check="served certificate",
                state=State.PROBLEM,
                where=f"Pod {facts.namespace}/{each.name}",
                what=f"serves a certificate that {'ended' if late else 'ends'} on {_day(ends)}",
                why=_SILENT,
                fix=f"kubectl -n {facts.namespace} rollout restart deployment/{facts.service_name}",
            )
        else:
            where = f"Pod {facts.namespace}/{each.name}"
            yield Diagnosis(check="served certificate", state=State.OK, where=where, what=f"until {_day(ends)}")


def _name(facts: Facts) -> str:
    return f"{facts.service_name}.{facts.namespace}.svc"


def _day(moment: datetime) -> str:
    return moment.date().isoformat()


def _value(secret: Secret, key: str) -> bytes:
    return _decoded(secret.data.get(key, ""))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
