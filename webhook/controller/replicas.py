"""Whether replicas of the webhook answer: what their Deployment says, and for how long it has said so.

Pods are ready before every node and API server leads connections to them, and a replica that is replaced answers until
it has drained. So each state counts only once it is some seconds old.

Source: k8s.io/kubernetes pkg/controller/deployment/progress.go, and util/deployment_util.go DeploymentComplete.
"""

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from webhook.cluster.connection import ApiServer

_ENDPOINT_SECONDS = 2.0  # until endpoints follow a pod that is ready


class Replicas:
    """See the module; for one thread.

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
        answer = self._server.ask("GET", self._path).accepted(self.title)
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
