import threading
from datetime import UTC, datetime

import pytest

from certs.authority import CertificateError, issue_authority, issue_leaf
from certs.store import live_paths, read_pair, write_pair, write_public

NOW = datetime(2026, 11, 21, tzinfo=UTC)
CA = issue_authority(NOW)


def leaf():
    return issue_leaf(CA, ("localhost",), NOW)


def test_a_stored_pair_reads_back_and_is_private(tmp_path):
    pair = leaf()
    certificate, key = write_pair(tmp_path, pair)
    assert read_pair(certificate, key) == pair
    assert key.stat().st_mode & 0o777 == 0o600
    assert (certificate, key) == live_paths(tmp_path)


def test_only_the_newest_pair_is_kept(tmp_path):
    for _ in range(3):
        write_pair(tmp_path, leaf())
    assert len(list(tmp_path.glob("pair-*"))) == 1


def test_a_public_certificate_is_readable_by_all(tmp_path):
    write_public(tmp_path / "ca.crt", CA.certificate)
    assert (tmp_path / "ca.crt").read_bytes() == CA.certificate
    assert (tmp_path / "ca.crt").stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["ca.crt"]


def test_the_link_never_points_nowhere_while_pairs_are_replaced(tmp_path):
    write_pair(tmp_path, leaf())
    done = threading.Event()
    missing = []

    def look():
        certificate, _ = live_paths(tmp_path)
        while not done.is_set():
            if not certificate.parent.is_symlink():
                missing.append(1)

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(50):
        write_pair(tmp_path, leaf())
    done.set()
    thread.join()
    assert not missing


def test_what_cannot_be_read_is_named(tmp_path):
    certificate, _ = write_pair(tmp_path, leaf())
    with pytest.raises(CertificateError) as caught:
        read_pair(certificate, tmp_path / "absent.key")
    assert str(caught.value) == f"{tmp_path}/absent.key: No such file or directory"


def test_mismatched_halves_are_named(tmp_path):
    certificate, _ = write_pair(tmp_path / "a", leaf())
    _, key = write_pair(tmp_path / "b", leaf())
    with pytest.raises(CertificateError) as caught:
        read_pair(certificate, key)
    assert str(caught.value) == f"{certificate} and {key}: the private key does not belong to the certificate"
