"""Rotate the CA, and complete the webhook configurations: caBundle and rules.

    Secret        empty -> one CA -> next CA announced -> both trusted -> one CA      (certs/rotation.py)
    caBundle      all trusted certificates of the Secret
    rules         under failurePolicy Fail, added once replicas serve a trusted certificate

A new CA is in the caBundle before it signs. In a scheduled rotation it waits another hour. The old CA stays trusted
until every replica has a certificate of the new CA. So the API server trusts every replica, even if a step fails or is
late. Every controller replica reconciles, not only the leader. Each write names the resource version it changes, so a
repeated write does no harm.
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

# Finds a change within this time if the watch is broken.
_LOOK_SECONDS = 10.0
_WAITING_SECONDS = 0.5
_LOOKS = 12  # the fewest checks in the life of a leaf
_ABSENT_SECONDS = 30.0  # Helm creates configurations last; later, their absence means a deletion
_FOLLOW = timedelta(minutes=1)  # until every replica has a leaf of the signing CA, and watches the Secret
_ENDPOINT_SECONDS = 2.0  # until the endpoints contain a ready pod

_log = logging.getLogger(__name__)


class Replicas:
    """Reads the availability of the webhook's replicas from their Deployment.

    Not thread-safe. A status counts only after some seconds. A pod is ready before every node and API server routes
    connections to it. A replaced replica still answers until its connections are drained.

    Source: k8s.io/kubernetes pkg/controller/deployment/progress.go, and util/deployment_util.go DeploymentComplete.

    Args:
        deployment: Namespace and name.
        settle_seconds: How long a former replica may answer after a rollout.
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
        """Whether all wanted replicas are ready and reachable.

        Raises:
            ClusterError: The Deployment cannot be read.
        """
        status, now = self._status()
        condition = _condition(status, "Available")
        good = condition.get("status") == "True"
        return self._is_old_enough(
            "available", _ENDPOINT_SECONDS, condition.get("lastTransitionTime") if good else None, now
        )

    def settled(self) -> bool:
        """Whether every replica has the Deployment's template, and the former replicas have ended.

        Raises:
            ClusterError: The Deployment cannot be read.
        """
        status, now = self._status()
        condition = _condition(status, "Progressing")
        wanted = status.get("wanted")
        good = status.get("observed") and all(
            status.get(name, 0) == wanted for name in ("replicas", "updatedReplicas", "availableReplicas")
        )
        return self._is_old_enough(
            "settled", self._settle_seconds, condition.get("lastUpdateTime", "") if good else None, now
        )

    def _status(self) -> tuple[Mapping[str, Any], datetime | None]:
        """Read the Deployment's status, and the API server's time.

        The result gets two more fields: ``wanted`` (spec.replicas), and ``observed`` (whether the status is of the
        current spec).
        """
        answer = self._server.send("GET", self._path).accepted(self.title)
        spec, status = answer.content.get("spec") or {}, answer.content.get("status") or {}
        generation = answer.content["metadata"].get("generation", 0)
        observed = status.get("observedGeneration", 0) >= generation
        return {**status, "wanted": spec.get("replicas", 1), "observed": observed}, answer.date

    def _is_old_enough(self, state: str, seconds: float, since: str | None, now: datetime | None) -> bool:
        """Whether the Deployment has been in a state for at least this many seconds.

        The age is the larger of two: since ``since`` by the API server's clock, and since the first observation of the
        state.

        Args:
            state: The key under which the first observation is kept.
            seconds: The required age.
            since: The start of the state by the Deployment's status. None if the Deployment is not in the state.
            now: The API server's time. Without it, only the observation counts.
        """
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
    return next((condition for condition in status.get("conditions") or () if condition.get("type") == kind), {})


class AuthorityUpkeep:
    """Reconciles the CA's Secret and the webhook configurations. For a single thread.

    Args:
        configuration: The name of both webhook configurations.
        secret: The Secret with the CA, and the lifetimes of its certificates. None if another program writes the
            caBundle.
        replicas: The webhook's Deployment. Some steps wait until its replicas are updated and ready. None for no wait.
        expected: The kinds of configurations in the release. At the start, the controller waits for their creation.

    Attributes:
        expires: When the CA expires. None if not yet known.
        waiting: The reason why the API server does not yet trust every replica. Empty once it does.
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
        self.waiting = "not checked yet"

    @property
    def seconds(self) -> float:
        """Seconds until the next check, unless a watch reports a change."""
        if self.waiting:
            return _WAITING_SECONDS
        return (
            _LOOK_SECONDS if self._secret is None else min(_LOOK_SECONDS, self._secret[1].leaf.total_seconds() / _LOOKS)
        )

    def follow(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` when the Secret or a configuration changes, from other threads."""
        if self._secret is not None:
            self._secret[0].follow(changed)
        for kind in KINDS:
            watch_named(self._server, collection(kind), self._configuration, changed)

    def reconcile(self) -> None:
        """Advance the CA rotation by one due step, and update the webhook configurations.

        Raises:
            ClusterError: The API server refuses or does not answer. The next call retries.
            CertificateError: The bundle holds no certificate.
        """
        if self._secret is None:
            self._complete(None)
            return
        secret, lives = self._secret
        held, now = self._store_usable_ca(secret, lives)
        published = self._complete(held, keeping=now < held.since + min(_FOLLOW, lives.overlap))
        following = held
        if next_authorities(held, now, lives, published=published) != held:

            def step(again: Authorities | None, later: datetime) -> Authorities:
                # Another writer's bundle may not be published yet.
                return next_authorities(again, later, lives, published=published and again == held)

            following, _ = secret.update(step)
            self._complete(following)
            fields = {"trusted": len(following.trusted), "announced": following.coming is not None}
            _log.info("advanced the CA rotation", extra={"fields": fields})
        self.expires = expires(following.signing.certificate)

    def _store_usable_ca(self, secret: CaSecret, lives: Lifetimes) -> tuple[Authorities, datetime]:
        """Return the Secret's content with a usable CA, and the API server's time.

        If the stored CA is missing or unusable, switch to the next CA or issue a new CA. The controller first writes
        the CA's certificate into the caBundles, and then stores the CA in the Secret.
        """
        held, now = secret.read()
        ready = usable_authorities(held, now, lives)
        if ready is held:
            return ready, now
        self._complete(ready, keeping=True)

        def step(again: Authorities | None, later: datetime) -> Authorities:
            return again if again is not None and usable_authorities(again, later, lives) is again else ready

        return secret.update(step)

    def _complete(self, held: Authorities | None, *, keeping: bool = False) -> bool:
        """Write missing caBundles and rules into the webhook configurations. False if anything was written.

        Args:
            held: The Secret's content, with the trusted certificates. None leaves the caBundle to another program.
            keeping: Whether to keep the certificates already in the caBundle.
        """
        trusted = None if held is None else held.trusted
        serving = (lambda: True) if self._replicas is None else self._replicas.available
        done = complete(self._server, self._configuration, trusted, keeping=keeping, serving=serving)
        if done.written:
            self.writes += len(done.written)
            fields = {"name": self._configuration, "configurations": len(done.written)}
            _log.info("completed the webhook configurations", extra={"fields": fields})
        self.waiting = self._missing(done)
        return not done.written

    def _missing(self, done: Completed) -> str:
        absent = [kind for kind in done.absent if kind in self._expected]
        if absent and self._clock() < self._began + _ABSENT_SECONDS:
            return f"waiting for the {absent[0]} {self._configuration}"
        if done.bare:
            return f"waiting for the caBundle of the {done.bare[0]} {self._configuration}"
        self._settled = self._settled or self._replicas is None or self._replicas.settled()
        if done.inert or not self._settled:
            return "waiting for ready replicas of the webhook"
        return ""
