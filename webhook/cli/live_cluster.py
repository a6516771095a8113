"""Connect to the live cluster in a kubeconfig, with helpful errors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from shlex import quote

from msgspec import Struct

from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.output.terminal import print_message
from webhook.cluster.connection import ApiServer
from webhook.cluster.credentials import SERVICE_ACCOUNT, Account, chosen_context
from webhook.cluster.errors import ClusterError
from webhook.cluster.live import LiveCluster, UnreadableClusterError, unreachable_error
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.text import one_line

CONFIG_MAP = "configmap:"  # prefix of a --config with a ConfigMap instead of a file
_KUBECONFIG = "~/.kube/config"
_ELSEWHERE = "use --context or --kubeconfig for another cluster, --snapshot for a file"
_NO_KUBECONFIG = "add --kubeconfig FILE, or read a file with --snapshot FILE"
_MAX_RELEASE_CHARS = 64  # with a platform's suffix it has about 20, as in v1.34.1-gke.1829001


class ClusterSelection(Struct, frozen=True, kw_only=True):
    """The options that select a cluster. ``opened`` is the result or error of an earlier `open_cluster`."""

    snapshot: str | None = None
    cluster: bool = False
    kubeconfig: str | None = None
    context: str | None = None
    user: str | None = None
    opened: LiveCluster | CommandError | None = None

    @property
    def live(self) -> bool:
        """Whether the options select an API server."""
        return self.cluster or any((self.kubeconfig, self.context, self.user))

    @property
    def as_options(self) -> str:
        """The options as text, for a command to copy. Empty for the default cluster."""
        named = {"snapshot": self.snapshot, "kubeconfig": self.kubeconfig, "context": self.context, "as": self.user}
        return "".join(f" --{option} {quote(value)}" for option, value in named.items() if value)


def open_cluster(selection: ClusterSelection) -> LiveCluster:
    """Connect to the selected cluster and read its Kubernetes version.

    Raises:
        CommandError: The cluster cannot be read. The exit code is 4.
    """
    if isinstance(selection.opened, CommandError):
        raise selection.opened
    if selection.opened is not None:
        return selection.opened
    account = _account(selection)
    try:
        context = chosen_context(account)
        server = ApiServer(account)
    except ClusterError as error:
        raise CommandError(f"{str(error).rstrip('.')}; {_NO_KUBECONFIG}", Exit.CLUSTER) from error
    source = f"cluster {context.name}"
    with reading():
        try:
            answer = server.send("GET", "/version")
        except ClusterError as error:
            raise unreachable_error(source, error) from error
    if answer.status == HTTPStatus.UNAUTHORIZED:
        raise CommandError(f"{source}: {server.url}: 401 Unauthorized: log in again, or use another user", Exit.CLUSTER)
    release = answer.content.get("gitVersion")
    live = LiveCluster(
        server=server,
        source=source,
        namespace=context.namespace or DEFAULT_NAMESPACE,
        release=one_line(release, _MAX_RELEASE_CHARS) if isinstance(release, str) else "",
    )
    if live.version is None:
        fault = f"Kubernetes {live.release} is not supported" if live.release else "its Kubernetes release is unknown"
        print_message(f"{source}: note: {fault}: checked as {RECORDED}; --kube-version selects another release")
    return live


def _account(selection: ClusterSelection) -> Account:
    """The credentials in kubectl's kubeconfig. In a pod without a kubeconfig, the service account."""
    file = selection.kubeconfig or os.environ.get("KUBECONFIG") or ""
    nowhere = not (file or selection.context or Path(_KUBECONFIG).expanduser().exists())
    if nowhere and "KUBERNETES_SERVICE_HOST" in os.environ:
        return Account(impersonate=selection.user, service_account=SERVICE_ACCOUNT)
    return Account(kubeconfig=file or _KUBECONFIG, context=selection.context, impersonate=selection.user)


@contextmanager
def reading() -> Iterator[None]:
    """Turn errors of reading a cluster into errors of the command. Raises CommandError with exit code 4."""
    try:
        yield
    except UnreadableClusterError as error:
        hint = f"; {_ELSEWHERE}" if error.silent else ""
        raise CommandError(f"{error}{hint}", Exit.CLUSTER) from error
