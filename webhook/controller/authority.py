"""Our CA and our webhook configurations, looked after: rotated in time, trusted by the API server, and complete.

    Secret        empty -> one CA -> announced -> overlap -> one CA      (certs/rotation.py)
    caBundle      before a CA signs, it is trusted; after each step, the certificates that the Secret says are trusted
    rules         of a webhook that may refuse writes, once replicas answer with a certificate that is trusted

A CA signs only after it was found in the configurations. A replacement in time waits one hour more. Old certificates
stay trusted until replicas have followed. So the API server trusts every replica even if a step is lost or late. Every
replica of the controller does this. Each write names the version it changes, so a repeated write does no harm.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from certs.authority import expires
from certs.rotation import Authorities, Lifetimes, next_authorities, usable_authorities
from webhook.cluster.connection import ApiServer
from webhook.cluster.named_watch import watch_named
from webhook.cluster.writing.ca_bundle import KINDS, Completed, collection, complete
from webhook.cluster.writing.ca_secret import CaSecret

# The latest time at which a change is found if its watch was lost.
LOOK_SECONDS = 10.0
_WAITING_SECONDS = 0.5
_LOOKS = 12  # the fewest looks in the life of a leaf
_ABSENT_SECONDS = 30.0  # Helm makes configurations last; after that, somebody has deleted one
_FOLLOW = timedelta(minutes=1)  # until every replica has a leaf of a CA that signs, and the Secret is watched
_ENDPOINT_SECONDS = 2.0  # until endpoints follow a pod that is ready

_log = logging.getLogger(__name__)


class Replicas:
    """Whether replicas of the webhook answer: what their Deployment says, and for how long. For one thread.

    Pods are ready before every node and API server leads connections to them. A replaced replica answers until it has
    drained. So each state counts only once it is some seconds old.

    Source: k8s.io/kubernetes pkg/controller/deployment/progress.go, and util/deployment_util.go DeploymentComplete.

    Args:
        deployment: Namespace and name.
        settle_seconds: How long after a rollout a replica of before may answer.
    """

    def __init__(
        self,
        server: ApiServer,
        deployment: tuple[str, str],
        settle_seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        namespace, name = deployment
        self._path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        self.title = f"Deployment {namespace}/{name}"
        self._settle_seconds = settle_seconds
        self._clock = clock
        self._since: dict[str, float] = {}

    def available(self) -> bool:
        """Whether as many replicas as are wanted are ready, and connections reach them.

        Raises:
            ClusterError: The Deployment cannot be read.
        """
        status, now = self._status()
        condition = _condition(status, "Available")
        good = condition.get("status") == "True"
        return self._lasts("available", _ENDPOINT_SECONDS, condition.get("lastTransitionTime") if good else None, now)

    def settled(self) -> bool:
        """Whether every replica is of the Deployment's template, and those of before have ended.

        Raises:
            ClusterError: The Deployment cannot be read.
        """
        status, now = self._status()
        condition = _condition(status, "Progressing")
        wanted = status.get("wanted")
        good = status.get("observed") and all(
            status.get(name, 0) == wanted for name in ("replicas", "updatedReplicas", "availableReplicas")
        )
        return self._lasts("settled", self._settle_seconds, condition.get("lastUpdateTime", "") if good else None, now)

    def _status(self) -> tuple[Mapping[str, Any], datetime | None]:
        """The Deployment's status with ``wanted`` replicas, whether it was ``observed``, and the server's time."""
        answer = self._server.send("GET", self._path).accepted(self.title)
        spec, status = answer.content.get("spec") or {}, answer.content.get("status") or {}
        generation = answer.content["metadata"].get("generation", 0)
        observed = status.get("observedGeneration", 0) >= generation
        return {**status, "wanted": spec.get("replicas", 1), "observed": observed}, answer.date

    def _lasts(self, state: str, seconds: float, since: str | None, now: datetime | None) -> bool:
        """Whether a state is as old as that, by the API server's times or by how long we have seen it."""
        if since is None:
            self._since.pop(state, None)
            return False
        seen = self._clock() - self._since.setdefault(state, self._clock())
        try:
            stated = 0.0 if now is None else (now - datetime.fromisoformat(since)).total_seconds()
        except (TypeError, ValueError):
            stated = 0.0
        return max(seen, stated) >= seconds


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((each for each in status.get("conditions") or () if each.get("type") == kind), {})


class AuthorityUpkeep:
    """See the module; for one thread.

    Args:
        configuration: What both webhook configurations are called.
        secret: The CA and its life; without it, somebody else fills in the caBundle.
        replicas: The webhook's; without it, nothing waits for them.
        expected: The kinds of configurations that the release has. They are waited for at the start.

    Shape: ``expires`` is when the CA ends, once it is known; ``writes`` counts configurations that were written;
    ``waiting`` says what is missing, and is empty once the API server trusts every replica.
    """

    def __init__(  # noqa: PLR0913 the last by keyword, for tests
        self,
        server: ApiServer,
        configuration: str,
        secret: tuple[CaSecret, Lifetimes] | None = None,
        replicas: Replicas | None = None,
        expected: Sequence[str] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._configuration = configuration
        self._secret = secret
        self._replicas = replicas
        self._expected = expected
        self._clock = clock
        self._began = clock()
        self._settled = replicas is None
        self.expires: datetime | None = None
        self.writes = 0
        self.waiting = "not looked at"

    @property
    def seconds(self) -> float:
        """How long until the next look, unless something changes before."""
        if self.waiting:
            return _WAITING_SECONDS
        return (
            LOOK_SECONDS if self._secret is None else min(LOOK_SECONDS, self._secret[1].leaf.total_seconds() / _LOOKS)
        )

    def follow(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` when the Secret or a configuration changes, from other threads."""
        if self._secret is not None:
            self._secret[0].follow(changed)
        for kind in KINDS:
            watch_named(self._server, collection(kind), self._configuration, changed)

    def reconcile(self) -> None:
        """Bring Secret and configurations one step further, if one is due.

        Raises:
            ClusterError: Or CertificateError; the next look begins anew.
        """
        if self._secret is None:
            self._complete(None)
            return
        secret, lives = self._secret
        held, now = self._ensured(secret, lives)
        published = self._complete(held, keeping=now < held.since + min(_FOLLOW, lives.overlap))
        following = held
        if next_authorities(held, now, lives, published=published) != held:

            def step(again: Authorities | None, later: datetime) -> Authorities:
                # Only what was seen to be published is.
                return next_authorities(again, later, lives, published=published and again == held)

            following, _ = secret.update(step)
            self._complete(following)
            fields = {"trusted": len(following.trusted), "announced": following.coming is not None}
            _log.info("the CA is a step further", extra={"fields": fields})
        self.expires = expires(following.signing.certificate)

    def _ensured(self, secret: CaSecret, lives: Lifetimes) -> tuple[Authorities, datetime]:
        """What the Secret holds, with a CA that can sign; a new one is trusted before it is in the Secret."""
        held, now = secret.read()
        ready = usable_authorities(held, now, lives)
        if ready is held:
            return ready, now
        self._complete(ready, keeping=True)

        def step(again: Authorities | None, later: datetime) -> Authorities:
            return again if again is not None and usable_authorities(again, later, lives) is again else ready

        return secret.update(step)

    def _complete(self, held: Authorities | None, *, keeping: bool = False) -> bool:
        """Whether every configuration was complete already."""
        trusted = None if held is None else held.trusted
        done = complete(self._server, self._configuration, trusted, keeping=keeping, serving=self._serving)
        if done.written:
            self.writes += len(done.written)
            fields = {"name": self._configuration, "configurations": len(done.written)}
            _log.info("completed the webhook configurations", extra={"fields": fields})
        self.waiting = self._missing(done)
        return not done.written

    def _serving(self) -> bool:
        return self._replicas is None or self._replicas.available()

    def _missing(self, done: Completed) -> str:
        absent = [kind for kind in done.absent if kind in self._expected]
        if absent and self._clock() < self._began + _ABSENT_SECONDS:
            return f"waiting for the {absent[0]} {self._configuration}"
        if done.bare:
            return f"waiting for the caBundle of the {done.bare[0]} {self._configuration}"
        self._settled = self._settled or self._replicas is None or self._replicas.settled()
        if done.inert or not self._settled:
            return "waiting for the replicas of the webhook"
        return ""
