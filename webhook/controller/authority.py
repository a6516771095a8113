"""Our CA, looked after: rotated in time, and trusted by the API server.

    Secret        empty -> one CA -> announced -> overlap -> one CA      (certs/rotation.py)
    caBundle      after each step, the certificates that the Secret says are trusted

The next CA signs only after the bundle with both was found in the configurations, and an hour has passed: whichever of
the two steps is lost or comes late, the API server trusts what replicas serve.
"""

import logging
from datetime import datetime

from certs.authority import expires
from certs.rotation import Authorities, Lives, ensured, rotated
from webhook.cluster.connection import ApiServer
from webhook.cluster.writing.ca_bundle import publish
from webhook.cluster.writing.ca_secret import CaSecret

# As often as the replicas look at the Secret.
LOOK_SECONDS = 10.0
_LOOKS = 12  # in the life of a leaf at least

_log = logging.getLogger(__name__)


class AuthorityUpkeep:
    """See the module; for one thread.

    Shape: ``expires`` is when the CA ends, once it is known; ``writes`` counts configurations that were written.
    """

    def __init__(self, server: ApiServer, secret: CaSecret, configuration: str, lives: Lives) -> None:
        self._server = server
        self._secret = secret
        self._configuration = configuration
        self._lives = lives
        self.seconds = min(LOOK_SECONDS, lives.leaf.total_seconds() / _LOOKS)
        self.expires: datetime | None = None
        self.writes = 0

    def look(self) -> None:
        """Bring Secret and configurations one step further, if one is due.

        Errors: ClusterError, CertificateError; the next look begins anew.
        """
        held, now = self._secret.settle(self._ensured)
        published = self._publish(held)
        following = held
        if rotated(held, now, self._lives, published=published) != held:

            def step(again: Authorities | None, later: datetime) -> Authorities:
                # Only what was seen to be published is.
                return rotated(again, later, self._lives, published=published and again == held)

            following, _ = self._secret.settle(step)
            self._publish(following)
            fields = {"trusted": len(following.trusted), "announced": following.coming is not None}
            _log.info("the CA is a step further", extra={"fields": fields})
        self.expires = expires(following.signing.certificate)

    def _publish(self, held: Authorities) -> bool:
        """Whether every configuration had the bundle already."""
        written = publish(self._server, self._configuration, held.bundle)
        if written:
            self.writes += written
            fields = {"name": self._configuration, "configurations": written, "certificates": len(held.trusted)}
            _log.info("wrote the caBundle", extra={"fields": fields})
        return written == 0

    def _ensured(self, held: Authorities | None, now: datetime) -> Authorities:
        return ensured(held, now, self._lives)
