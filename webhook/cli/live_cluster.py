"""The live cluster that a command line selects: an API server from a kubeconfig, and errors if it cannot be read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from shlex import quote

from msgspec import Struct

from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.terminal import say
from webhook.cluster.connection import SERVICE_ACCOUNT, Account, ApiServer, ClusterError, chosen_context
from webhook.cluster.live import LiveCluster, UnreadableClusterError, unreachable_error
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.text import one_line

CONFIG_MAP = "configmap:"  # begins a --config that names the ConfigMap of an installation, not a file
_KUBECONFIG = "~/.kube/config"
_ELSEWHERE = "--context and --kubeconfig choose another cluster, --snapshot reads a file"
_NO_KUBECONFIG = "name one with --kubeconfig, or read a file with --snapshot"


class Given(Struct, frozen=True, kw_only=True):
    """The options that select a cluster, as given on the command line.

    Shape: ``opened`` is what `open_cluster` returned or raised for them, where it was called already.
    """

    snapshot: str | None = None
    cluster: bool = False
    kubeconfig: str | None = None
    context: str | None = None
    user: str | None = None
    opened: LiveCluster | CommandError | None = None

    @property
    def live(self) -> bool:
        """Whether they select an API server."""
        return self.cluster or any((self.kubeconfig, self.context, self.user))

    @property
    def words(self) -> str:
        """The options again, for a command to copy; empty if they select the default cluster."""
        named = {"snapshot": self.snapshot, "kubeconfig": self.kubeconfig, "context": self.context, "as": self.user}
        return "".join(f" --{option} {quote(value)}" for option, value in named.items() if value)


def open_cluster(given: Given) -> LiveCluster:
    """Connect to the cluster that the options select, and request its release.

    Errors: CommandError with exit code 4.
    """
    if isinstance(given.opened, CommandError):
        raise given.opened
    if given.opened is not None:
        return given.opened
    account = _account(given)
    try:
        context = chosen_context(account)
        server = ApiServer(account)
    except ClusterError as error:
        raise CommandError(f"{str(error).rstrip('.')}; {_NO_KUBECONFIG}", Exit.CLUSTER) from error
    source = f"cluster {context.name}"
    with reading():
        try:
            status, answer = server.request("GET", "/version")
        except ClusterError as error:
            raise unreachable_error(source, error) from error
    if status == HTTPStatus.UNAUTHORIZED:
        raise CommandError(
            f"{source}: {server.url}: 401 Unauthorized: log in again, or choose another user", Exit.CLUSTER
        )
    release = answer.get("gitVersion")
    live = LiveCluster(
        server=server,
        source=source,
        namespace=context.namespace or DEFAULT_NAMESPACE,
        release=one_line(release, 64) if isinstance(release, str) else "",
    )
    if live.version is None:
        runs = f"runs {live.release}, which is not supported" if live.release else "does not say its release"
        say(f"{source}: note: it {runs}: judged as Kubernetes {RECORDED}, or as --kube-version")
    return live


def _account(given: Given) -> Account:
    """The credentials: from a kubeconfig, found as kubectl does; in a pod without one, the service account."""
    file = given.kubeconfig or os.environ.get("KUBECONFIG") or ""
    nowhere = not (file or given.context or Path(_KUBECONFIG).expanduser().exists())
    if nowhere and "KUBERNETES_SERVICE_HOST" in os.environ:
        return Account(impersonate=given.user, service_account=SERVICE_ACCOUNT)
    return Account(kubeconfig=file or _KUBECONFIG, context=given.context, impersonate=given.user)


@contextmanager
def reading() -> Iterator[None]:
    """Turn errors of reading a cluster within the block into the end of the command.

    Errors: CommandError with exit code 4.
    """
    try:
        yield
    except UnreadableClusterError as error:
        hint = f"; {_ELSEWHERE}" if error.silent else ""
        raise CommandError(f"{error}{hint}", Exit.CLUSTER) from error
