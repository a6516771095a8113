"""The certificate that a replica issues to itself, with the CA in the Secret that all replicas share.

The controller stores the CA once the API server trusts it. Without a CA, a replica keeps its certificate or waits.

The certificate's key never leaves this machine's memory: it stands in a directory that the chart keeps in memory, since
OpenSSL reads files. When the Secret changes, and every ten seconds, the certificate is judged by the API server's
clock, and replaced when it is due or when another CA signs.
"""

import asyncio
import contextlib
import logging
from datetime import datetime
from pathlib import Path

from certs.authority import Pair, expires
from certs.rotation import Authorities, Lives, leaf_due, new_leaf
from certs.store import write_pair
from webhook.cluster.connection import ClusterError
from webhook.cluster.writing.ca_secret import CaSecret
from webhook.logs import bounded

# cert-manager's webhook does so too; a request costs the API server less than a millisecond.
_LOOK_SECONDS = 10.0
_LOOKS = 12  # in the life of a leaf at least, where that is short: four of them after it is due
# After a failure at the start, doubled with each one more.
_FIRST_WAIT_SECONDS = 0.5

_log = logging.getLogger(__name__)


class OwnCertificate:
    """See the module.

    Shape: the first of ``names`` is the one that clients are told. ``fault`` is empty while all is well, and says what
    is waited for where ``issued`` is False.
    """

    def __init__(self, secret: CaSecret, names: tuple[str, ...], directory: Path, lives: Lives) -> None:
        self._secret = secret
        self._names = names
        self._directory = directory
        self._lives = lives
        self._look_seconds = min(_LOOK_SECONDS, lives.leaf.total_seconds() / _LOOKS)
        self._leaf: Pair | None = None
        self.authority_expires: datetime | None = None
        self.fault = f"waiting for {secret.title}"
        self.issued = asyncio.Event()

    async def keep(self) -> None:
        """Have a certificate, and keep it good, for ever."""
        wait, changed, loop = _FIRST_WAIT_SECONDS, asyncio.Event(), asyncio.get_running_loop()

        def noticed() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(changed.set)

        self._secret.follow(noticed)
        while True:
            changed.clear()
            try:
                await asyncio.to_thread(self.look)
            except Exception as error:  # noqa: BLE001 whatever it is: without a next look the certificate would end
                self._failed(str(error))
            else:
                self.fault = ""
                self.issued.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds if self.issued.is_set() else wait):
                    await changed.wait()
            wait = min(self._look_seconds, wait * 2)

    def look(self) -> None:
        """Look at the Secret, and issue a certificate if one is due.

        Errors: ClusterError, CertificateError, OSError; the certificate stays as it is.
        """
        authorities, now = self._secret.read()
        if authorities is None:
            raise ClusterError(f"{self._secret.title} holds no CA yet; the controller makes it")
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
            return "there is none"
        return leaf_due(self._leaf.certificate, authorities, self._names[0], now, self._lives)

    def _failed(self, text: str) -> None:
        told = bounded(text) if self.issued.is_set() else bounded(f"waiting for {self._secret.title}: {text}")
        if told != self.fault:
            _log.warning("the certificate cannot be looked after: %s", told)
        self.fault = told
