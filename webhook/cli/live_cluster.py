"""A live cluster, read once: the API server that a kubeconfig names, and lists of its kinds. Only get and list."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

from msgspec import Raw, Struct

from webhook.cli.commands.options import Given
from webhook.cli.exit_codes import Exit, Stopped
from webhook.cli.terminal import say
from webhook.cluster.connection import SERVICE_ACCOUNT, Account, ApiServer, ClusterError, chosen_context
from webhook.cluster.listing import Listing, Pause, list_objects
from webhook.cluster.resources import Resource
from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED, KubernetesVersion, parse_version
from webhook.core.rules.frame.rule import one_line

_Kept = TypeVar("_Kept")

_KUBECONFIG = "~/.kube/config"
_ELSEWHERE = "--context and --kubeconfig choose another cluster, --snapshot reads a file"
_NO_KUBECONFIG = "name one with --kubeconfig, or read a file with --snapshot"
# What is lost without a kind; of all others, what depends on it.
_LOST: Mapping[str, str] = {
    "nodes": "rules about nodes and domains are not evaluated",
    "pods": "rules about running pods are not evaluated",
    "namespaces": "labels of namespaces choose no ceiling and no override",
    "services": "the selectors that Services give to defaults are not known",
    "horizontalpodautoscalers": "replicas are those of the workload, not the autoscaler's maximum",
}


class Live(Struct, frozen=True, kw_only=True):
    """An API server that has answered.

    Shape: ``source`` is what people call it: ``cluster prod``. ``namespace`` is where manifests go that name none.
    ``release`` is its own word, empty where it does not say.
    """

    server: ApiServer
    source: str
    namespace: str = "default"
    release: str = ""

    @property
    def version(self) -> KubernetesVersion | None:
        """The release, as far as behaviour depends on it; None for one that is not supported."""
        try:
            return parse_version(self.release)
        except ValueError:
            return None


def open_cluster(given: Given) -> Live:
    """Connect to the cluster that the options name, and ask for its release.

    Errors: Stopped with exit code 4.
    """
    account = _account(given)
    try:
        context = chosen_context(account)
        server = ApiServer(account)
    except ClusterError as error:
        raise Stopped(f"{str(error).rstrip('.')}; {_NO_KUBECONFIG}", Exit.CLUSTER) from error
    source = f"cluster {context.name}"
    try:
        status, answer = server.request("GET", "/version")
    except ClusterError as error:
        raise unreachable(source, error) from error
    if status == HTTPStatus.UNAUTHORIZED:
        raise Stopped(f"{source}: {server.url}: 401 Unauthorized: log in again, or choose another user", Exit.CLUSTER)
    release = answer.get("gitVersion")
    live = Live(
        server=server,
        source=source,
        namespace=context.namespace or "default",
        release=one_line(release, 64) if isinstance(release, str) else "",
    )
    if live.version is None:
        runs = f"runs {live.release}, which is not supported" if live.release else "does not say its release"
        say(f"{source}: note: it {runs}: judged as Kubernetes {RECORDED}, or as --kube-version")
    return live


def read_kinds(
    live: Live,
    resources: Iterable[Resource],
    keep: Callable[[Raw, TypeMeta], _Kept],
    progress: Callable[[int], None],
    *,
    pause: Pause = Pause(),  # noqa: B008 a value that never changes
) -> Iterator[Listing[_Kept]]:
    """List each kind; ``progress`` is told how many objects were read so far.

    Errors: Stopped with exit code 4 where the API server does not answer, and where it allows nothing at all.
    """
    total, allowed, refused = 0, False, ""

    def count(objects: int) -> None:
        nonlocal total
        total += objects
        progress(total)

    for resource in resources:
        try:
            listing = list_objects(live.server, resource, keep, progress=count, pause=pause)
        except ClusterError as error:
            raise unreachable(live.source, error) from error
        allowed, refused = allowed or not listing.refused, refused or listing.detail
        yield listing
    if refused and not allowed:
        raise Stopped(f"{live.source}: nothing may be read: {refused}", Exit.CLUSTER)


def loss(listing: Listing[_Kept]) -> str:
    """``nodes: 403 Forbidden: what is lost by it``."""
    lost = _LOST.get(listing.resource, "what depends on them is not known")
    return f"{listing.resource}: {listing.refused}: {lost}"


def _account(given: Given) -> Account:
    """Who asks, and where: as kubectl finds its configuration; in a pod without one, its service account."""
    file = given.kubeconfig or os.environ.get("KUBECONFIG") or ""
    nowhere = not (file or given.context or Path(_KUBECONFIG).expanduser().exists())
    if nowhere and "KUBERNETES_SERVICE_HOST" in os.environ:
        return Account(impersonate=given.user, service_account=SERVICE_ACCOUNT)
    return Account(kubeconfig=file or _KUBECONFIG, context=given.context, impersonate=given.user)


def unreachable(source: str, error: ClusterError) -> Stopped:
    """The end of a command whose cluster does not answer."""
    return Stopped(f"{source} cannot be read: {error}; {_ELSEWHERE}", Exit.CLUSTER)
