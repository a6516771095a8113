"""The steps of a CA rotation: signing CA, trusted CAs and next CA, as a value stored in a Secret.

    one CA        signs and is trusted
    announced     the next CA is trusted too, and waits until every API server has the new bundle
    overlap       the next CA signs, and the former CA stays trusted until its last leaf has ended
    one CA        again

A client with the current or the previous bundle accepts every leaf of the current or the previous step. Writers need no
order: a step depends only on the value, the time and the published bundle.

Source: cert-manager pkg/server/tls/authority/authority.go (a CA in a Secret, leaves in memory); kyverno
pkg/controllers/certmanager and pkg/tls/renewer.go (the overlap).
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct
from msgspec.structs import replace

from certs.authority import (
    CA_LIFE,
    LEAF_LIFE,
    CertificateError,
    Pair,
    certificate_of,
    expires,
    issue_authority,
    issue_leaf,
    issued,
    key_fault,
    renewal_due,
    renewal_time,
    trust_fault,
)

# Time for an API server with a broken watch to get the new bundle. A healthy cluster needs a tenth of a second.
_OVERLAP = timedelta(hours=1)


class Lifetimes(Struct, frozen=True, kw_only=True):
    """Lifetimes of the CA and of leaf certificates."""

    authority: timedelta = CA_LIFE
    leaf: timedelta = LEAF_LIFE

    @property
    def overlap(self) -> timedelta:
        """The wait after publishing a bundle. It is shorter for leaves that live minutes."""
        return min(_OVERLAP, self.leaf / 4)


class Authorities(Struct, frozen=True, kw_only=True):
    """The stored state of a rotation.

    Attributes:
        signing: The signing CA.
        since: Start of its signing.
        trusted: A PEM certificate for each trusted CA, including ``signing`` and ``coming``.
        coming: The next CA, if it is announced.
    """

    signing: Pair
    since: datetime
    trusted: tuple[bytes, ...]
    coming: Pair | None = None

    @property
    def bundle(self) -> bytes:
        """The caBundle of a client. It verifies every leaf."""
        return b"".join(self.trusted)


def certificates_in(pem: bytes) -> tuple[bytes, ...]:
    """Return each certificate of a bundle in normalised PEM. Raises CertificateError."""
    try:
        certificates = x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateError("the CA bundle is not PEM") from error
    return tuple(dict.fromkeys(certificate.public_bytes(Encoding.PEM) for certificate in certificates))


def read_secret_data(data: Mapping[str, bytes]) -> Authorities | None:
    """Decode a Secret's data. Returns None without a readable CA."""
    try:
        signing = Pair(certificate=data["tls.crt"], key=data["tls.key"])
        coming = Pair(certificate=data["next.crt"], key=data["next.key"]) if "next.crt" in data else None
        since = datetime.fromisoformat(data["signs-since"].decode()).astimezone(UTC)
        trusted = certificates_in(data.get("ca.crt", signing.certificate))
        own = [certificate_of(pair.certificate) for pair in (signing, coming) if pair is not None]
    except (KeyError, ValueError, CertificateError):
        return None
    all_trusted = (*(certificate.public_bytes(Encoding.PEM) for certificate in own), *trusted)
    return Authorities(signing=signing, since=since, trusted=tuple(dict.fromkeys(all_trusted)), coming=coming)


def secret_data(authorities: Authorities) -> Mapping[str, bytes]:
    """Encode the state as a Secret's data, the inverse of `read_secret_data`."""
    data = {
        "tls.crt": authorities.signing.certificate,
        "tls.key": authorities.signing.key,
        "ca.crt": authorities.bundle,
        "signs-since": authorities.since.isoformat().encode(),
    }
    if authorities.coming is not None:
        data |= {"next.crt": authorities.coming.certificate, "next.key": authorities.coming.key}
    return data


def usable_authorities(held: Authorities | None, now: datetime, lives: Lifetimes) -> Authorities:
    """Return ``held`` if its CA can sign. Otherwise change over to the next CA, or issue a new CA."""
    if held is not None:
        if authority_fault(held.signing, now, lives) is None:
            return held
        if held.coming is not None and authority_fault(held.coming, now, lives) is None:
            return _change_over(held, held.coming, now)
    fresh = issue_authority(now, life=lives.authority)
    return Authorities(signing=fresh, since=now, trusted=certificates_in(fresh.certificate))


def next_authorities(held: Authorities | None, now: datetime, lives: Lifetimes, *, published: bool) -> Authorities:
    """Return the next step of the rotation, or ``held`` if no step is due.

    Args:
        held: The stored state. None starts with a new CA.
        now: The API server's time.
        lives: Lifetimes for new certificates.
        published: Whether clients already have the bundle of ``held``.
    """
    ready = usable_authorities(held, now, lives)
    if ready is not held:
        return ready
    if ready.coming is not None:
        if authority_fault(ready.coming, now, lives) is not None:  # issued by a wrong clock
            return _announce(ready, now, lives)
        waited = now >= issued(ready.coming.certificate) + lives.overlap
        return _change_over(ready, ready.coming, now) if published and waited else ready
    if len(ready.trusted) > 1:
        # A replica with the old Secret may still sign with the former CA for a moment.
        ended = now >= ready.since + lives.leaf + lives.overlap
        return replace(ready, trusted=certificates_in(ready.signing.certificate)) if ended else ready
    return _announce(ready, now, lives) if renewal_due(ready.signing.certificate, now) else ready


def authority_fault(authority: Pair, now: datetime, lives: Lifetimes) -> str | None:
    """Return why the CA must not sign certificates, or None."""
    fault = key_fault(authority)
    if fault is not None:
        return fault
    certificate = certificate_of(authority.certificate)
    try:
        if not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return "not a CA"
    except (x509.ExtensionNotFound, ValueError):
        return "not a CA"
    if now < certificate.not_valid_before_utc:
        return "not valid yet"
    return "at its end" if now + lives.overlap >= certificate.not_valid_after_utc else None


def new_leaf(authorities: Authorities, names: Sequence[str], now: datetime, lives: Lifetimes) -> Pair:
    """Issue a leaf. Clients with the bundle accept it now and until its renewal.

    Raises:
        CertificateError: A client would reject it.
    """
    leaf = issue_leaf(authorities.signing, names, now, life=lives.leaf)
    for at in (now, renewal_time(leaf.certificate)):
        fault = trust_fault(leaf.certificate, authorities.bundle, names[0], at)
        if fault is not None:
            raise CertificateError(f"the new certificate would be refused: {fault}")
    return leaf


def leaf_due(leaf: bytes, authorities: Authorities, name: str, now: datetime, lives: Lifetimes) -> str | None:
    """Return the reason to replace the leaf, or None."""
    if renewal_due(leaf, now):
        return "two thirds of its life are over"
    ahead = min(now + lives.overlap, expires(leaf))
    return trust_fault(leaf, authorities.signing.certificate, name, ahead)


def _announce(held: Authorities, now: datetime, lives: Lifetimes) -> Authorities:
    coming = issue_authority(now, life=lives.authority)
    return replace(held, coming=coming, trusted=_bundle_of(held.signing.certificate, coming.certificate))


def _change_over(held: Authorities, coming: Pair, now: datetime) -> Authorities:
    return Authorities(signing=coming, since=now, trusted=_bundle_of(coming.certificate, held.signing.certificate))


def _bundle_of(*certificates: bytes) -> tuple[bytes, ...]:
    return certificates_in(b"".join(certificates))
