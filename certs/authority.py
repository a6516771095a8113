"""Issue a CA and leaves (P-256), and judge what is given.

A leaf lives 7 days and is renewed at two thirds of that, as cert-manager's webhook does it; the CA lives a year.
Both are valid from one hour before their issue, so that a caller whose clock is behind accepts them at once.

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

# Each is derived in the module.
CLOCK_SKEW = timedelta(hours=1)
CA_LIFE = timedelta(days=365)
LEAF_LIFE = timedelta(days=7)
_CURVE = ec.SECP256R1


class CertificateError(Exception):
    """A certificate or key that cannot be used; the text says which file and why, in one line."""


class Pair(Struct, frozen=True, kw_only=True):
    """A certificate and its private key.

    Shape: PEM; ``certificate`` may be followed by its chain.
    """

    certificate: bytes
    key: bytes


def issue_authority(now: datetime, *, common_name: str = "evenspread CA", life: timedelta = CA_LIFE) -> Pair:
    """A new self-signed CA that may sign leaves and nothing below them."""
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
    """A new server certificate for DNS names and addresses, never outliving its CA.

    Errors: CertificateError if ``authority`` is no CA, or ``names`` is empty.
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
    """The first certificate of a PEM bundle.

    Errors: CertificateError.
    """
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError("not a PEM certificate") from error


def expires(pem: bytes) -> datetime:
    """When the first certificate of a PEM bundle ends, in UTC.

    Errors: CertificateError.
    """
    return certificate_of(pem).not_valid_after_utc


def begins(pem: bytes) -> datetime:
    """From when on the first certificate of a PEM bundle is valid, in UTC.

    Errors: CertificateError.
    """
    return certificate_of(pem).not_valid_before_utc


def issued(pem: bytes) -> datetime:
    """When a certificate of ours was issued: its first hour lies before that.

    Errors: CertificateError.
    """
    return begins(pem) + CLOCK_SKEW


def renewal_time(pem: bytes) -> datetime:
    """When two thirds of the certificate's life are over, its first hour not counted.

    Errors: CertificateError.
    """
    start = issued(pem)
    return start + (expires(pem) - start) * 2 / 3


def renewal_due(pem: bytes, now: datetime) -> bool:
    """Whether two thirds of the certificate's life are over.

    Errors: CertificateError.
    """
    return now >= renewal_time(pem)


def key_fault(pair: Pair) -> str | None:
    """What is wrong with the pair itself: unreadable, or the key is of another certificate. None if nothing is."""
    try:
        certificate = certificate_of(pair.certificate)
        key = _private_key(pair.key)
    except CertificateError as error:
        return str(error)
    if key.public_key() != certificate.public_key():
        return "the private key does not belong to the certificate"
    return None


def trust_fault(certificate: bytes, authority: bytes, name: str, at: datetime) -> str | None:
    """Why a client that trusts ``authority`` would refuse the certificate for ``name`` at a time; None if it would not.

    Give a time to come as ``at`` to learn of a fault before clients do.
    Shape: ``authority`` may hold several CAs (an old and a new one while they overlap).
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
    """Whether a bundle's CA has signed the certificate, by way of the chain that follows it.

    For certificates of others: `trust_fault` asks for extensions that many CAs leave out and Go does without.
    Shape: PEM, both.
    """
    try:
        chain, trusted = x509.load_pem_x509_certificates(certificate), x509.load_pem_x509_certificates(authority)
    except ValueError:
        return False
    for each, following in zip(chain, (*chain[1:], None), strict=True):
        if any(_issued(each, ca) for ca in trusted):
            return True
        if following is None or not _issued(each, following):
            return False
    return False


def _issued(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def covers_name(certificate: bytes, name: str) -> bool:
    """Whether a certificate is one of a DNS name.

    Errors: CertificateError.
    """
    try:
        names = certificate_of(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    meant = {name, f"*.{name.partition('.')[2]}"}
    return not meant.isdisjoint(names.get_values_for_type(x509.DNSName))


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """The private key, of whatever algorithm; typed as the only one that is issued here."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature) as error:
        raise CertificateError("not an unencrypted PEM private key") from error
    return key  # type: ignore[return-value]  # an existing pair may be RSA; only public_key() is used of it


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
        .not_valid_before(now.astimezone(UTC) - CLOCK_SKEW)
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
    # X.520 ub-common-name: 64 characters; longer Service names stand in the SAN alone, which is all that Go reads.
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
