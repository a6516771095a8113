"""Write the admission policies of the chart, and repair them.

The leader compares the stored policies with the policy file at its start, after a change of the file, and each minute.
So it also removes changes by others, and exemptions that have expired.
"""

import logging
import time
from collections.abc import Callable

from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import ClusterError
from webhook.cluster.writing.admission_policies import chart_binding, put_policy
from webhook.core.admission_policies.installed import binding_names, installed_policies
from webhook.core.api.times import api_time
from webhook.core.api.version import RECORDED, KubernetesVersion, parse_version
from webhook.core.policy.policy import Policy
from webhook.logs import bounded, exception_fields

_LOOK_SECONDS = 60.0  # others change these policies rarely; a check reads each policy
_RETRY_SECONDS = 10.0  # a fault leaves the cluster without the policy

_log = logging.getLogger(__name__)


class PolicyUpkeep:
    """Writes the policies of a release. A single thread calls `turn`. Any thread may read the attributes.

    Attributes:
        fault: The reason why the policies may differ from the policy file. Empty without a problem.
    """

    def __init__(
        self, server: ApiServer, release: str, policy: Callable[[], Policy], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._server = server
        self._release = release
        self._policy = policy
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        """Check again at the next turn. Another replica may have led meanwhile."""
        self._written: Policy | None = None
        self._due = 0.0
        self.fault = "not checked yet"

    def turn(self) -> None:
        """Write changed policies, if a check is due. Never raises."""
        policy = self._policy()
        if policy == self._written and self._clock() < self._due:
            return
        try:
            fault = bounded(self._reconcile(policy))
            if fault and fault != self.fault:
                _log.warning("the admission policies cannot be written: %s", fault)
        except Exception as error:  # noqa: BLE001 a bug here must not stop the CA's rotation
            fault = f"failed because of a bug: {type(error).__name__}"
            if fault != self.fault:
                _log.error("a bug stopped the admission policies", extra={"fields": exception_fields(error)})
        self._written, self.fault = policy, fault
        self._due = self._clock() + (_RETRY_SECONDS if fault else _LOOK_SECONDS)

    def _reconcile(self, policy: Policy) -> str:
        """Write the policy of each binding, and return the first fault. A missing binding stops no other policy."""
        version: KubernetesVersion | None = None
        fault, written, today = "", 0, api_time(self._clock())[:10]
        for name in binding_names(self._release):
            try:
                binding = chart_binding(self._server, name)
                version = version or self._version()
                for made in installed_policies(policy, version, today, [binding]):
                    written += put_policy(self._server, made)
            except (ClusterError, ValueError) as error:
                fault = fault or str(error)
        if written:
            _log.info("wrote the admission policies", extra={"fields": {"policies": written}})
        return fault

    def _version(self) -> KubernetesVersion:
        """Return the API server's release, or the newest known release. Raises ClusterError."""
        release = str(self._server.send("GET", "/version").accepted("version").content.get("gitVersion"))
        try:
            return parse_version(release)
        except ValueError:
            return RECORDED
