"""Which CA signs, which ones are trusted, and what comes next; as one value, which stands in a Secret.

    one CA        signs and is trusted
    announced     the next one is trusted too, and does not sign yet, until every API server has the new bundle
    overlap       the next one signs; the former one is trusted until every leaf that it has signed has ended
    one CA        again

So a client that has the bundle of this moment or of the one before accepts every leaf of this moment or of the one
before. Whoever writes first is right: a step depends on nothing but the value, the time, and whether the bundle is
published.

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

# Until an API server whose watch was broken has the new bundle; in a healthy cluster it takes a tenth of a second.
_OVERLAP = timedelta(hours=1)


class Lifetimes(Struct, frozen=True, kw_only=True):
    """How long certificates live."""

    authority: timedelta = CA_LIFE
    leaf: timedelta = LEAF_LIFE

    @property
    def overlap(self) -> timedelta:
        """How long a bundle stands before anything depends on it; shorter where leaves live for minutes."""
        return min(_OVERLAP, self.leaf / 4)


class Authorities(Struct, frozen=True, kw_only=True):
    """The CA that signs, the one that will, and the certificates that clients must trust.

    Shape: ``trusted`` holds one PEM certificate each, that of ``signing`` and of ``coming`` among them.
    """

    signing: Pair
    since: datetime
    trusted: tuple[bytes, ...]
    coming: Pair | None = None

    @property
    def bundle(self) -> bytes:
        """What a client needs to trust every leaf."""
        return b"".join(self.trusted)


def certificates_in(pem: bytes) -> tuple[bytes, ...]:
    """Each certificate of a bundle, written the one way.

    Errors: CertificateError.
    """
    try:
        found = x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateError("the CA bundle is not PEM") from error
    return tuple(dict.fromkeys(each.public_bytes(Encoding.PEM) for each in found))


def read_secret_data(data: Mapping[str, bytes]) -> Authorities | None:
    """The value of a Secret's data; None if there is no CA in it, or none that can be read."""
    try:
        signing = Pair(certificate=data["tls.crt"], key=data["tls.key"])
        coming = Pair(certificate=data["next.crt"], key=data["next.key"]) if "next.crt" in data else None
        since = datetime.fromisoformat(data["signs-since"].decode()).astimezone(UTC)
        trusted = certificates_in(data.get("ca.crt", signing.certificate))
        own = [certificate_of(each.certificate) for each in (signing, coming) if each is not None]
    except (KeyError, ValueError, CertificateError):
        return None
    all_trusted = (*(each.public_bytes(Encoding.PEM) for each in own), *trusted)
    return Authorities(signing=signing, since=since, trusted=tuple(dict.fromkeys(all_trusted)), coming=coming)


def secret_data(authorities: Authorities) -> Mapping[str, bytes]:
    """The Secret's data for a value; `read` gives the value back."""
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
    """The same value if its CA can sign; else one with a CA that can: the next one, or a new one."""
    if held is not None:
        if authority_fault(held.signing, now, lives) is None:
            return held
        if held.coming is not None and authority_fault(held.coming, now, lives) is None:
            return _changed_over(held, held.coming, now)
    fresh = issue_authority(now, life=lives.authority)
    return Authorities(signing=fresh, since=now, trusted=certificates_in(fresh.certificate))


def next_authorities(held: Authorities | None, now: datetime, lives: Lifetimes, *, published: bool) -> Authorities:
    """The next value; the same one if nothing is due. ``published`` says that clients have been given its bundle."""
    ready = usable_authorities(held, now, lives)
    if ready is not held:
        return ready
    if ready.coming is not None:
        if authority_fault(ready.coming, now, lives) is not None:  # of a clock that was wrong
            return _announced(ready, now, lives)
        waited = now >= issued(ready.coming.certificate) + lives.overlap
        return _changed_over(ready, ready.coming, now) if published and waited else ready
    if len(ready.trusted) > 1:
        # A replica that has not heard of the change yet may sign with the former CA for a moment more.
        ended = now >= ready.since + lives.leaf + lives.overlap
        return replace(ready, trusted=certificates_in(ready.signing.certificate)) if ended else ready
    return _announced(ready, now, lives) if renewal_due(ready.signing.certificate, now) else ready


def authority_fault(authority: Pair, now: datetime, lives: Lifetimes) -> str | None:
    """Why nothing should be signed with the CA; None if it may."""
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
    """A leaf that clients with the bundle accept, now and until it is renewed.

    Errors: CertificateError if they would not.
    """
    leaf = issue_leaf(authorities.signing, names, now, life=lives.leaf)
    for at in (now, renewal_time(leaf.certificate)):
        fault = trust_fault(leaf.certificate, authorities.bundle, names[0], at)
        if fault is not None:
            raise CertificateError(f"the new certificate would be refused: {fault}")
    return leaf


def leaf_due(leaf: bytes, authorities: Authorities, name: str, now: datetime, lives: Lifetimes) -> str | None:
    """Why another leaf is needed; None if this one will do."""
    if renewal_due(leaf, now):
        return "two thirds of its life are over"
    ahead = min(now + lives.overlap, expires(leaf))
    return trust_fault(leaf, authorities.signing.certificate, name, ahead)


def _announced(held: Authorities, now: datetime, lives: Lifetimes) -> Authorities:
    coming = issue_authority(now, life=lives.authority)
    return replace(held, coming=coming, trusted=_together(held.signing.certificate, coming.certificate))


def _changed_over(held: Authorities, coming: Pair, now: datetime) -> Authorities:
    return Authorities(signing=coming, since=now, trusted=_together(coming.certificate, held.signing.certificate))


def _together(*certificates: bytes) -> tuple[bytes, ...]:
    return certificates_in(b"".join(certificates))
