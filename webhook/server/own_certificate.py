"""The certificate that a replica issues to itself, with the CA in the Secret that all replicas share.

Its key never leaves this machine's memory: it stands in a directory that the chart keeps in memory, since OpenSSL reads
files. Every ten seconds it is judged by the API server's clock, and replaced when it is due or when another CA signs.
"""

import asyncio
import logging
from datetime import datetime
from pathlib import Path

from certs.authority import Pair, expires
from certs.rotation import Authorities, Lives, ensured, leaf_due, new_leaf
from certs.store import write_pair
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
        wait = _FIRST_WAIT_SECONDS
        while True:
            try:
                await asyncio.to_thread(self.look)
            except Exception as error:  # noqa: BLE001 whatever it is: without a next look the certificate would end
                self._failed(str(error))
            else:
                self.fault = ""
                self.issued.set()
            await asyncio.sleep(self._look_seconds if self.issued.is_set() else wait)
            wait = min(self._look_seconds, wait * 2)

    def look(self) -> None:
        """Look at the Secret, fill it if it is empty, and issue a certificate if one is due.

        Errors: ClusterError, CertificateError, OSError; the certificate stays as it is.
        """
        authorities, now = self._secret.settle(self._step)
        self.authority_expires = expires(authorities.signing.certificate)
        why = self._due(authorities, now)
        if why is None:
            return
        leaf = new_leaf(authorities, self._names, now, self._lives)
        write_pair(self._directory, leaf)
        self._leaf = leaf
        fields = {"why": why, "expires": expires(leaf.certificate).isoformat(), "names": [*self._names]}
        _log.info("issued a certificate", extra={"fields": fields})

    def _step(self, held: Authorities | None, now: datetime) -> Authorities:
        return ensured(held, now, self._lives)

    def _due(self, authorities: Authorities, now: datetime) -> str | None:
        if self._leaf is None:
            return "there is none"
        return leaf_due(self._leaf.certificate, authorities, self._names[0], now, self._lives)

    def _failed(self, text: str) -> None:
        told = bounded(text) if self.issued.is_set() else bounded(f"waiting for {self._secret.title}: {text}")
        if told != self.fault:
            _log.warning("the certificate cannot be looked after: %s", told)
        self.fault = told
