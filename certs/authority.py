"""Issue a CA and leaf certificates (P-256), and check existing certificates.

A leaf lives 7 days and is due for renewal after two thirds of them, as in cert-manager's webhook. The CA lives a year.
Both are valid from an hour before their issue, so a client with a late clock accepts them at once.

    authority = issue_authority(now)
    leaf = issue_leaf(authority, ["evenspread.evenspread.svc"], now)

Source: cert-manager pkg/server/tls/authority/authority.go; open-policy-agent/cert-controller rotator.go (look-ahead).
"""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from msgspec import Struct

_CLOCK_SKEW = timedelta(hours=1)  # A new certificate is valid on hosts with a slower clock too.
CA_LIFE = timedelta(days=365)  # A new CA takes three steps in the cluster, so it is rare.
LEAF_LIFE = timedelta(days=7)  # A new leaf takes no step in the cluster. A stolen key is useful for a week at most.
_CURVE = ec.SECP256R1


class CertificateError(Exception):
    """An unusable certificate or key. The text names the file and the reason in one line."""


class Pair(Struct, frozen=True, kw_only=True):
    """A certificate and its private key, both in PEM. The certificate may be followed by its chain."""

    certificate: bytes
    key: bytes


def issue_authority(now: datetime, *, common_name: str = "evenspread CA", life: timedelta = CA_LIFE) -> Pair:
    """Return a new self-signed CA. It may sign leaves, but no further CAs."""
    key = ec.generate_private_key(_CURVE())
    name = _name(common_name)
    certificate = (
        _builder(name, name, key.public_key(), now, now + life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def issue_leaf(authority: Pair, names: Sequence[str], now: datetime, *, life: timedelta = LEAF_LIFE) -> Pair:
    """Return a new server certificate for DNS names and addresses. It never outlives its CA.

    Raises:
        CertificateError: ``authority`` is not a CA, or ``names`` is empty.
    """
    if not names:
        raise CertificateError("a server certificate needs at least one name")
    ca = certificate_of(authority.certificate)
    ca_key = _private_key(authority.key)
    key = ec.generate_private_key(_CURVE())
    certificate = (
        _builder(_name(names[0]), ca.subject, key.public_key(), now, min(now + life, ca.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return _pair(certificate, key)


def certificate_of(pem: bytes) -> x509.Certificate:
    """Return the first certificate of a PEM bundle. Raises CertificateError."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError("not a PEM certificate") from error


def expires(pem: bytes) -> datetime:
    """Return the end of the first certificate of a PEM bundle, in UTC. Raises CertificateError."""
    return certificate_of(pem).not_valid_after_utc


def begins(pem: bytes) -> datetime:
    """Return the start of the first certificate of a PEM bundle, in UTC. Raises CertificateError."""
    return certificate_of(pem).not_valid_before_utc


def issued(pem: bytes) -> datetime:
    """Return the time of issue of an evenspread certificate, an hour after its start. Raises CertificateError."""
    return begins(pem) + _CLOCK_SKEW


def renewal_time(pem: bytes) -> datetime:
    """Return the time after two thirds of the certificate's life, counted from its issue. Raises CertificateError."""
    start = issued(pem)
    return start + (expires(pem) - start) * 2 / 3


def renewal_due(pem: bytes, now: datetime) -> bool:
    """Whether two thirds of the certificate's life have passed. Raises CertificateError."""
    return now >= renewal_time(pem)


def key_fault(pair: Pair) -> str | None:
    """Return the fault of the pair: unreadable, or key and certificate do not match. None if it has no fault."""
    try:
        certificate = certificate_of(pair.certificate)
        key = _private_key(pair.key)
    except CertificateError as error:
        return str(error)
    if key.public_key() != certificate.public_key():
        return "the private key does not belong to the certificate"
    return None


def trust_fault(certificate: bytes, authority: bytes, name: str, at: datetime) -> str | None:
    """Return a client's reason to reject the certificate, or None.

    Args:
        certificate: PEM, followed by its chain.
        authority: The CAs trusted by the client, in PEM: two of them during a rotation.
        name: The name used by the client.
        at: The time of the handshake. Pass a future time to find a fault before clients do.
    """
    try:
        store = Store(x509.load_pem_x509_certificates(authority))
    except ValueError:
        return "the CA bundle is not PEM"
    verifier = PolicyBuilder().store(store).time(at).build_server_verifier(_subject(name))
    try:
        chain = x509.load_pem_x509_certificates(certificate)
        verifier.verify(chain[0], chain[1:])
    except ValueError:
        return "not a PEM certificate"
    except VerificationError as error:
        return str(error).splitlines()[0]
    return None


def signed_by(certificate: bytes, authority: bytes) -> bool:
    """Whether a CA of the bundle signed the certificate, directly or through the chain behind it.

    Use this for foreign certificates. `trust_fault` requires extensions that Go does not, and many CAs omit them. Both
    arguments are PEM.
    """
    try:
        chain, trusted = x509.load_pem_x509_certificates(certificate), x509.load_pem_x509_certificates(authority)
    except ValueError:
        return False
    for link, issuer in zip(chain, (*chain[1:], None), strict=True):
        if any(_issued(link, ca) for ca in trusted):
            return True
        if issuer is None or not _issued(link, issuer):
            return False
    return False


def _issued(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def covers_name(certificate: bytes, name: str) -> bool:
    """Whether the certificate is valid for a DNS name. Raises CertificateError."""
    try:
        names = certificate_of(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    meant = {name, f"*.{name.partition('.')[2]}"}
    return not meant.isdisjoint(names.get_values_for_type(x509.DNSName))


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Load a private key of any algorithm. The type names the only algorithm issued here."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature) as error:
        raise CertificateError("not an unencrypted PEM private key") from error
    return key  # type: ignore[return-value]  # an existing pair may be RSA: callers only use public_key()


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate=certificate.public_bytes(pem), key=private)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - _CLOCK_SKEW)
        .not_valid_after(end.astimezone(UTC))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    # X.520 limits a common name to 64 characters (ub-common-name). Go reads only the SAN, so a longer Service name is
    # complete there.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _subject(name: str) -> x509.IPAddress | x509.DNSName:
    general = _general_name(name)
    if isinstance(general, x509.IPAddress | x509.DNSName):
        return general
    raise AssertionError(name)
