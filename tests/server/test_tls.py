"""The context that follows its files, and rotation under connections."""

import contextlib
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta

import pytest
from build import Clock as StoppedClock
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from server.attack import answers
from server.conftest import Clock, Server, eventually, posted, read_reply, review, serving

from certs.authority import CertificateError, Pair, begins, certificate_of, expires, issue_authority, issue_leaf
from certs.store import write_pair
from webhook.server.certificates import RotatingTls

NOW = datetime.now(UTC)
CA = issue_authority(NOW)


def leaf(name="localhost", at=NOW):
    return issue_leaf(CA, (name, "localhost", "127.0.0.1"), at)


def test_only_ciphers_that_authenticate_what_they_encrypt_are_offered(tmp_path):
    served = RotatingTls(*write_pair(tmp_path, leaf()))
    names = {each["name"] for each in served.context.get_ciphers()}
    assert names
    assert {name for name in names if "GCM" not in name and "CHACHA20" not in name} == set()


def handshake(tls, name="localhost", identity=None):
    """The serial number that a client gets, with or without SNI and a certificate of its own; over memory alone."""
    trust = ssl.create_default_context(cadata=CA.certificate.decode())
    trust.check_hostname = name is not None
    if identity is not None:
        trust.load_cert_chain(*identity)
    left, right = socket.socketpair()

    def greet():
        with contextlib.suppress(OSError), tls.context.wrap_socket(left, server_side=True) as server:
            server.send(b"!")

    with left, right:
        left.settimeout(5)
        right.settimeout(5)
        done = threading.Thread(target=greet)
        done.start()
        try:
            with trust.wrap_socket(right, server_hostname=name) as client:
                assert client.recv(1) == b"!"
                return int(client.getpeercert()["serialNumber"], 16)
        finally:
            done.join()


def client_identity(directory, authority):
    """A certificate that says who a client is."""
    key = ec.generate_private_key(ec.SECP256R1())
    signer = serialization.load_pem_private_key(authority.key, None)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(certificate_of(authority.certificate).subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(hours=1))
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return write_pair(directory, Pair(certificate=made.public_bytes(pem), key=private))


def test_with_a_client_ca_only_its_clients_are_answered(tmp_path):
    first, second, clock = leaf(), leaf(), StoppedClock()
    authority, other = issue_authority(NOW, common_name="clients"), issue_authority(NOW, common_name="other")
    (tmp_path / "clients.crt").write_bytes(authority.certificate)
    tls = RotatingTls(*write_pair(tmp_path / "tls", first), tmp_path / "clients.crt", clock=clock)
    known = client_identity(tmp_path / "known", authority)
    assert handshake(tls, identity=known) == serial(first)
    for identity in (None, client_identity(tmp_path / "unknown", other)):
        with pytest.raises(OSError, match=r"certificate required|unknown ca|alert"):
            handshake(tls, identity=identity)
    write_pair(tmp_path / "tls", second)
    clock.now += 1
    assert handshake(tls, identity=known) == serial(second)
    with pytest.raises(OSError, match=r"certificate required|alert"):
        handshake(tls)


def test_a_client_ca_that_is_none_stops_the_start(tmp_path):
    with pytest.raises(CertificateError) as caught:
        RotatingTls(*write_pair(tmp_path, leaf()), tmp_path / "absent.crt")
    assert str(caught.value) == f"{tmp_path}/absent.crt: No such file or directory"


def serial(pair):
    return certificate_of(pair.certificate).serial_number


@pytest.mark.parametrize("name", [pytest.param("localhost", id="with SNI"), pytest.param(None, id="without SNI")])
def test_new_files_are_served_on_a_later_handshake(tmp_path, name):
    clock, first, second = StoppedClock(), leaf(), leaf()
    tls = RotatingTls(*write_pair(tmp_path, first), clock=clock)
    assert handshake(tls, name) == serial(first)
    write_pair(tmp_path, second)
    assert handshake(tls, name) == serial(first), "the files are looked at twice a second"
    clock.now += 1
    assert handshake(tls, name) == serial(second)
    assert tls.fault == ""


def test_a_mismatched_pair_keeps_the_last_good_one_until_it_is_mended(tmp_path):
    clock, first, second = StoppedClock(), leaf(), leaf()
    certificate, key = write_pair(tmp_path, first)
    tls = RotatingTls(certificate, key, clock=clock)
    key.write_bytes(second.key)
    clock.now += 1
    assert handshake(tls) == serial(first)
    assert tls.fault == f"{certificate} and {key}: the private key does not belong to the certificate"
    assert tls.faults == 1
    certificate.write_bytes(second.certificate)
    clock.now += 1
    assert handshake(tls) == serial(second)
    assert tls.fault == ""


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda certificate, _: certificate.unlink(), id="gone"),
        pytest.param(lambda certificate, _: certificate.write_bytes(b""), id="empty"),
        pytest.param(lambda _, key: key.write_bytes(key.read_bytes()[:50]), id="half a key"),
        pytest.param(lambda certificate, _: (certificate.unlink(), certificate.mkdir()), id="a directory"),
    ],
)
def test_files_that_cannot_be_read_keep_the_last_good_pair(tmp_path, spoil):
    clock, first = StoppedClock(), leaf()
    certificate, key = write_pair(tmp_path, first)
    tls = RotatingTls(certificate, key, clock=clock)
    spoil(certificate, key)
    clock.now += 1
    assert handshake(tls) == serial(first)
    assert tls.fault


def test_the_first_pair_must_be_good(tmp_path):
    certificate, key = write_pair(tmp_path, Pair(certificate=leaf().certificate, key=leaf().key))
    with pytest.raises(CertificateError):
        RotatingTls(certificate, key)


def test_an_encrypted_key_is_refused_without_asking_the_terminal(tmp_path):
    certificate, key = write_pair(tmp_path, leaf())
    key.write_bytes(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
    with pytest.raises(CertificateError):
        RotatingTls(certificate, key)


@pytest.mark.parametrize(
    ("settings", "served"),
    [
        pytest.param({"maximum_version": ssl.TLSVersion.TLSv1_2}, "TLSv1.2", id="TLS 1.2"),
        pytest.param({}, "TLSv1.3", id="TLS 1.3"),
    ],
)
def test_tls_versions(server, settings, served):
    with server.connect(server.tls(**settings)) as connection:
        assert connection.version() == served


def test_older_versions_are_refused(server):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(server.ca)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.minimum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        server.connect(context).close()


def test_http_2_is_not_offered(server):
    context = server.tls()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with server.connect(context) as connection:
        assert connection.selected_alpn_protocol() == "http/1.1"


@pytest.mark.slow
def test_rotation_under_fresh_connections_with_a_mismatched_window(tmp_path):
    first, second = leaf(), leaf()
    certificate, key = write_pair(tmp_path, first)
    authority = tmp_path / "ca.crt"
    authority.write_bytes(CA.certificate)
    with serving("--cert", str(certificate), "--key", str(key)) as started:
        server = started._replace(ca=str(authority))
        seen, failures, done = [], [], threading.Event()
        clients = [threading.Thread(target=fresh, args=(server, seen, failures, done)) for _ in range(2)]
        for client in clients:
            client.start()
        eventually(lambda: len(seen) > 3)
        key.write_bytes(second.key)  # the window opens: a certificate and the key of another
        eventually(lambda: server.metric("evenspread_certificate_faults_total") >= 1)
        before = len(seen)
        eventually(lambda: len(seen) > before + 3)
        certificate.write_bytes(second.certificate)
        eventually(lambda: serial(second) in seen)
        taken = len(seen)
        eventually(lambda: len(seen) > taken + 10)
        done.set()
        for client in clients:
            client.join()
        assert failures == []
        assert set(seen[:taken]) == {serial(first), serial(second)}
        assert seen[taken:].count(serial(first)) <= 1, "what the other client was waiting for, and no more"
        eventually(lambda: "certificate: ok\n" in server.get("/readyz")[1])


def fresh(server: Server, seen, failures, done):
    context = server.tls()
    while not done.is_set():
        try:
            with server.connect(context) as connection, connection.makefile("rb") as stream:
                number = int(connection.getpeercert()["serialNumber"], 16)
                connection.sendall(posted(review()))
                assert read_reply(stream).status == 200
                seen.append(number)
        except Exception as error:  # noqa: BLE001 every kind of failure counts
            failures.append(repr(error))


@pytest.mark.slow
def test_a_certificate_out_of_its_time_shows_and_does_not_end_readiness(tmp_path):
    """The caller's clock judges it, and may be right where ours is not; without an endpoint nothing would be better."""
    made, clock = leaf(), Clock(tmp_path)
    certificate, key = write_pair(tmp_path / "tls", made)
    authority = tmp_path / "ca.crt"
    authority.write_bytes(CA.certificate)
    with serving("--cert", str(certificate), "--key", str(key), before=clock.code) as started:
        server = started._replace(ca=str(authority))
        for days, said in {
            8: f"expired at {expires(made.certificate):%Y-%m-%dT%H:%M:%SZ}, by this machine's clock",
            -1: f"not valid before {begins(made.certificate):%Y-%m-%dT%H:%M:%SZ}, by this machine's clock",
            0: "ok",
        }.items():
            clock.ahead(days * 86400)
            eventually(lambda said=said: f"certificate: {said}\n" in server.get("/readyz")[1])
            assert server.get("/readyz")[0] == 200
            assert answers(server) < 5
        life = [server.metric(f"evenspread_certificate_{each}_timestamp_seconds") for each in ("not_before", "expiry")]
    assert life == [each(made.certificate).timestamp() for each in (begins, expires)]


@pytest.mark.parametrize(
    ("seconds", "fault"),
    [
        pytest.param(-3601, "not valid before 2026-11-21T23:00:00Z", id="before its first second"),
        pytest.param(-3600, "", id="its first second"),
        pytest.param(7 * 86400 - 1, "", id="its last second"),
        pytest.param(7 * 86400, "expired at 2026-11-29T00:00:00Z", id="after its last second"),
    ],
)
def test_the_life_of_a_certificate_by_a_clock(tmp_path, seconds, fault):
    born = datetime(2026, 11, 22, tzinfo=UTC)
    made = issue_leaf(issue_authority(born), ("localhost",), born)
    assert RotatingTls(*write_pair(tmp_path, made)).time_fault(born + timedelta(seconds=seconds)) == fault


def test_expiry_is_a_metric(server):
    week = (datetime.now(UTC) + timedelta(days=7)).timestamp()
    assert abs(server.metric("evenspread_certificate_expiry_timestamp_seconds") - week) < 600
