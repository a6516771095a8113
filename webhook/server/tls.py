"""A TLS context that follows its files, and keeps the last good pair if new files are bad.

gunicorn asks for a context only once, at start. So that outer context stays, and its SNI callback, which OpenSSL calls
for every handshake, with or without a server name, gives each connection a context with the newest pair.
"""

import logging
import ssl
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from certs.authority import CertificateError, begins, expires
from certs.store import read_pair
from webhook.logs import bounded

# Looking at the files takes two stat calls; a handshake takes a hundred times as long.
LOOK_SECONDS = 0.5

# Of TLS 1.2, what Go's clients prefer: forward secrecy and authenticated encryption, nothing with CBC.
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"

_log = logging.getLogger(__name__)
_Signature = tuple[tuple[int, int, int], ...]


class RotatingTls:
    """The certificate and key in two files, in their last good state.

    Errors: CertificateError at construction for a pair that cannot be served; none afterwards.
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
        # The outer context decides whether a client's certificate is requested, the chosen one whether it is accepted.
        self.context = _context(client_ca)
        self.context.load_cert_chain(certificate, key, password=_no_password)
        self.context.sni_callback = self._choose

    def refresh(self) -> None:
        """Look at the files, unless that was done just before."""
        now = self._clock()
        if now - self._looked < LOOK_SECONDS:
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
            _log.warning("the new certificate cannot be served; the last good one stays: %s", self.fault)
        else:
            self.fault = ""
            _log.info("serving a new certificate", extra={"fields": {"expires": self.expires.isoformat()}})

    def time_fault(self, now: datetime) -> str:
        """What a client with this clock has against the certificate's life; empty if nothing."""
        if now < self.begins:
            return f"not valid before {self.begins:%Y-%m-%dT%H:%M:%SZ}"
        return f"ended at {self.expires:%Y-%m-%dT%H:%M:%SZ}" if now >= self.expires else ""

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
    # kube-apiserver would use h2 if it were offered, and this server does not speak it.
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


def _no_password() -> str:
    # Without this OpenSSL would ask for the password of an encrypted key on the terminal, and wait.
    return ""
