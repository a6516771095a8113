from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.authority import (
    CertificateError,
    Pair,
    certificate_of,
    covers_name,
    expires,
    issue_authority,
    issue_leaf,
    key_fault,
    renewal_due,
    signed_by,
    trust_fault,
)

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
CA = issue_authority(NOW)
NAMES = ("evenspread.evenspread.svc", "localhost", "127.0.0.1", "::1")
LEAF = issue_leaf(CA, NAMES, NOW)


def test_a_leaf_is_p256_for_seven_days_from_an_hour_ago():
    leaf = certificate_of(LEAF.certificate)
    key = leaf.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"
    assert leaf.not_valid_before_utc == NOW - timedelta(hours=1)
    assert leaf.not_valid_after_utc == NOW + timedelta(days=7)
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_a_leaf_never_outlives_its_ca():
    late = NOW + timedelta(days=363)
    assert expires(issue_leaf(CA, NAMES, late).certificate) == expires(CA.certificate)


def test_a_leaf_needs_a_name():
    with pytest.raises(CertificateError, match=r"^a server certificate needs at least one name$"):
        issue_leaf(CA, (), NOW)


def test_a_service_name_longer_than_a_common_name_stands_in_the_san():
    name = f"{'a' * 60}.{'b' * 60}.svc"
    assert trust_fault(issue_leaf(CA, (name,), NOW).certificate, CA.certificate, name, NOW) is None


@pytest.mark.parametrize("name", [pytest.param(name, id=f"a client that dials {name}") for name in NAMES])
def test_every_name_is_trusted(name):
    assert trust_fault(LEAF.certificate, CA.certificate, name, NOW) is None


@pytest.mark.parametrize(
    ("name", "at", "authority", "fault"),
    [
        pytest.param("other.svc", NOW, CA, "leaf certificate has no matching subjectAltName", id="another name"),
        pytest.param("localhost", NOW + timedelta(days=8), CA, "cert is not valid at validation time", id="expired"),
        pytest.param(
            "localhost", NOW - timedelta(hours=2), CA, "cert is not valid at validation time", id="not yet valid"
        ),
        pytest.param("localhost", NOW, issue_authority(NOW, common_name="other"), "all candidates exhausted", id="CA"),
        pytest.param("localhost", NOW, Pair(certificate=b"junk", key=b""), "the CA bundle is not PEM", id="no bundle"),
    ],
)
def test_what_a_client_would_refuse(name, at, authority, fault):
    assert fault in trust_fault(LEAF.certificate, authority.certificate, name, at)


def test_both_cas_of_an_overlap_are_trusted():
    successor = issue_authority(NOW + timedelta(days=300), common_name="evenspread CA 2")
    bundle = CA.certificate + successor.certificate
    later = NOW + timedelta(days=300)
    for authority in (CA, successor):
        leaf = issue_leaf(authority, NAMES, later)
        assert trust_fault(leaf.certificate, bundle, "localhost", later) is None


@pytest.mark.parametrize(
    ("hours", "due"),
    [
        pytest.param(0, False, id="fresh"),
        pytest.param(7 * 16 - 1, False, id="just under two thirds"),
        pytest.param(7 * 16, True, id="two thirds"),
        pytest.param(7 * 24 + 1, True, id="expired"),
    ],
)
def test_renewal_is_due_at_two_thirds(hours, due):
    assert renewal_due(LEAF.certificate, NOW + timedelta(hours=hours)) is due


def rsa_key():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@pytest.mark.parametrize(
    ("pair", "fault"),
    [
        pytest.param(LEAF, None, id="a pair"),
        pytest.param(
            Pair(certificate=LEAF.certificate, key=CA.key),
            "the private key does not belong to the certificate",
            id="the key of another certificate",
        ),
        pytest.param(
            Pair(certificate=LEAF.certificate, key=rsa_key()),
            "the private key does not belong to the certificate",
            id="a key of another kind",
        ),
        pytest.param(Pair(certificate=b"", key=LEAF.key), "not a PEM certificate", id="an empty certificate"),
        pytest.param(
            Pair(certificate=LEAF.certificate, key=LEAF.key[:60]),
            "not an unencrypted PEM private key",
            id="half a key",
        ),
    ],
)
def test_a_pair_is_judged_before_it_is_served(pair, fault):
    assert key_fault(pair) == fault


FURTHER = issue_authority(NOW)


@pytest.mark.parametrize(
    ("certificate", "authority", "signed"),
    [
        pytest.param(LEAF.certificate, CA.certificate, True, id="its CA"),
        pytest.param(LEAF.certificate, FURTHER.certificate + CA.certificate, True, id="its CA among others"),
        pytest.param(LEAF.certificate, FURTHER.certificate, False, id="another CA of the same name"),
        pytest.param(LEAF.certificate + CA.certificate, CA.certificate, True, id="with its chain"),
        pytest.param(LEAF.certificate + CA.certificate, FURTHER.certificate, False, id="a chain that ends elsewhere"),
        pytest.param(LEAF.certificate + FURTHER.certificate, FURTHER.certificate, False, id="a chain of strangers"),
        pytest.param(b"x", CA.certificate, False, id="no certificate"),
    ],
)
def test_who_signed_is_known_by_the_signature(certificate, authority, signed):
    assert signed_by(certificate, authority) is signed


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        pytest.param(("a.b.svc", "x"), True, id="one of its names"),
        pytest.param(("*.b.svc",), True, id="a wildcard"),
        pytest.param(("*.a.b.svc", "b.svc"), False, id="wildcards stand for one label"),
        pytest.param(("127.0.0.1",), False, id="an address"),
    ],
)
def test_a_certificate_is_for_its_names(names, meant):
    assert covers_name(issue_leaf(CA, names, NOW).certificate, "a.b.svc") is meant


def test_a_certificate_without_names_is_for_nobody():
    assert not covers_name(CA.certificate, "a.b.svc")
