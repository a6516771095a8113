"""The served certificate: a TLS context reloaded from files, and their writers.

The server takes one TLS context at its start, and keeps it. OpenSSL calls the SNI callback of this context for every
handshake, with or without a server name. The callback then selects a context with the newest certificate and key.
"""

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from certs.authority import CertificateError, Pair, begins, expires, issue_leaf, renewal_due
from certs.rotation import Authorities, Lifetimes, leaf_due, new_leaf
from certs.store import read_pair, write_pair
from webhook.cluster.errors import ClusterError
from webhook.cluster.writing.ca_secret import CaSecret
from webhook.logs import bounded, log_change

# Checking the files takes two stat calls. A handshake takes a hundred times as long.
_FILE_SECONDS = 0.5
# cert-manager's webhook uses the same interval. A request costs the API server less than a millisecond.
_SECRET_SECONDS = 10.0
_LOOKS = 12  # the fewest checks in the life of a leaf; four of them after it is due
# Wait after a failure at the start, doubled with each further failure.
_FIRST_WAIT_SECONDS = 0.5
_RENEW_SECONDS = 60.0  # a due certificate has more than two days left

# The TLS 1.2 ciphers preferred by Go's clients: forward secrecy and authenticated encryption, no CBC.
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"

_log = logging.getLogger(__name__)
_Signature = tuple[tuple[int, int, int], ...]


class RotatingTls:
    """A TLS context with the certificate and key from two files, reloaded on change.

    It keeps the last valid pair. Raises CertificateError if the first pair is invalid.
    """

    def __init__(
        self,
        certificate: Path,
        key: Path,
        client_ca: Path | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        self._clock = clock
        self._looked = clock()
        self._signature = self._stat()
        self._current, self.begins, self.expires = self._load()
        self.faults = 0
        self.fault = ""
        # The outer context decides whether to request a client certificate, the selected context whether to accept it.
        self.context = _context(client_ca)
        self.context.load_cert_chain(certificate, key, password=_no_password)
        self.context.sni_callback = self._choose

    def refresh(self) -> None:
        """Load the certificate files again if they have changed.

        Skip the check if the last check was less than `_FILE_SECONDS` ago. If the new certificate is invalid, keep the
        last one and record the fault.
        """
        now = self._clock()
        if now - self._looked < _FILE_SECONDS:
            return
        self._looked = now
        signature = self._stat()
        if signature == self._signature:
            return
        self._signature = signature
        try:
            self._current, self.begins, self.expires = self._load()
        except CertificateError as error:
            self.faults += 1
            self.fault = bounded(str(error))
            _log.warning("the new certificate is invalid; the last good version stays in use: %s", self.fault)
        else:
            self.fault = ""
            _log.info("serving a new certificate", extra={"fields": {"expires": self.expires.isoformat()}})

    def time_fault(self, now: datetime) -> str:
        """Return why a client with this clock rejects the certificate: not valid yet, or expired. Else empty."""
        if now < self.begins:
            return f"not valid before {self.begins:%Y-%m-%dT%H:%M:%SZ}"
        return f"expired at {self.expires:%Y-%m-%dT%H:%M:%SZ}" if now >= self.expires else ""

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _outer: ssl.SSLContext) -> None:
        self.refresh()
        connection.context = self._current

    def _stat(self) -> _Signature | None:
        try:
            stats = [path.stat() for path in (self._certificate, self._key)]
        except OSError:
            return None
        return tuple((stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in stats)

    def _load(self) -> tuple[ssl.SSLContext, datetime, datetime]:
        pair = read_pair(self._certificate, self._key)
        context = _context(self._client_ca)
        try:
            context.load_cert_chain(self._certificate, self._key, password=_no_password)
        except (ssl.SSLError, OSError) as error:
            raise CertificateError(f"{self._certificate} and {self._key}: {error}") from error
        return context, begins(pair.certificate), expires(pair.certificate)


def _context(client_ca: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(client_ca)
        except (ssl.SSLError, OSError) as error:
            raise CertificateError(f"{client_ca}: {error.strerror or error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    # kube-apiserver would use h2 if offered, and this server does not support it.
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


def _no_password() -> str:
    # Otherwise OpenSSL prompts for the password of an encrypted key.
    return ""


class OwnCertificate:
    """A certificate issued by the replica itself, with the shared CA in the Secret.

    The controller stores the CA once the API server trusts it. While the Secret is empty, a new replica waits, and a
    running replica keeps its certificate. OpenSSL reads files, so the key is in a directory in memory (set by the
    chart). Every ten seconds and after each change of the Secret, the replica checks its certificate by the API
    server's clock. It issues a new certificate when the old one is due for renewal, or when another CA signs. Clients
    connect to the first of ``names``.
    """

    def __init__(self, secret: CaSecret, names: tuple[str, ...], directory: Path, lives: Lifetimes) -> None:
        self._secret = secret
        self._names = names
        self._directory = directory
        self._lives = lives
        self._look_seconds = min(_SECRET_SECONDS, lives.leaf.total_seconds() / _LOOKS)
        self._leaf: Pair | None = None
        self.authority_expires: datetime | None = None
        self.fault = f"waiting for {secret.title}"
        self.issued = asyncio.Event()

    async def keep(self) -> None:
        """Issue the certificate and renew it, forever."""
        wait, changed, loop = _FIRST_WAIT_SECONDS, asyncio.Event(), asyncio.get_running_loop()

        def noticed() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(changed.set)

        self._secret.follow(noticed)
        while True:
            changed.clear()
            try:
                await asyncio.to_thread(self.reconcile)
            except Exception as error:  # noqa: BLE001 any error: without another attempt the certificate would expire
                self._failed(str(error))
            else:
                self.fault = ""
                self.issued.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds if self.issued.is_set() else wait):
                    await changed.wait()
            wait = min(self._look_seconds, wait * 2)

    def reconcile(self) -> None:
        """Read the Secret, and issue a certificate if due. After an error the old certificate stays."""
        authorities, now = self._secret.read()
        if authorities is None:
            raise ClusterError(f"{self._secret.title} holds no CA yet; the controller creates it")
        self.authority_expires = expires(authorities.signing.certificate)
        why = self._due(authorities, now)
        if why is None:
            return
        leaf = new_leaf(authorities, self._names, now, self._lives)
        write_pair(self._directory, leaf)
        self._leaf = leaf
        fields = {"why": why, "expires": expires(leaf.certificate).isoformat(), "names": [*self._names]}
        _log.info("issued a certificate", extra={"fields": fields})

    def _due(self, authorities: Authorities, now: datetime) -> str | None:
        if self._leaf is None:
            return "the replica has no certificate yet"
        return leaf_due(self._leaf.certificate, authorities, self._names[0], now, self._lives)

    def _failed(self, text: str) -> None:
        fault = text if self.issued.is_set() else f"waiting for {self._secret.title}: {text}"
        self.fault = log_change(_log, "the certificate cannot be renewed: %s", fault, self.fault)


async def renew_certificates(directory: Path, authority: Pair, names: tuple[str, ...]) -> None:
    """Replace the server's certificate after two thirds of its life. Runs forever.

    The wall clock decides about renewal, because machines can suspend.
    """
    while True:
        await asyncio.sleep(_RENEW_SECONDS)
        current = directory / "live" / "tls.crt"
        if renewal_due(current.read_bytes(), datetime.now(UTC)):
            write_pair(directory, issue_leaf(authority, names, datetime.now(UTC)))
