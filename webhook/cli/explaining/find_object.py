"""One object of a cluster by its kind and name: asked of the API server, or found in the snapshot's file."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct

from webhook.cli.exit_codes import CommandError, Exit
from webhook.cluster.connection import ApiServer, ClusterError
from webhook.cluster.resources import group_path
from webhook.core.api.types import Named
from webhook.core.workloads.custom_kinds import TEMPLATED, EmbeddedKind
from webhook.snapshot.load import SnapshotError, read_items
from webhook.snapshot.open_file import open_cluster_file

# As kubectl abbreviates them.
_SHORT = {
    "po": "pod",
    "deploy": "deployment",
    "rs": "replicaset",
    "sts": "statefulset",
    "ds": "daemonset",
    "cj": "cronjob",
    "rc": "replicationcontroller",
}
_BUILT_IN_GROUPS = frozenset({"", "apps", "batch"})
_NAMED = msgspec.json.Decoder(Named)


class Wanted(Struct, frozen=True, kw_only=True):
    """The object that was asked for. Shape: ``groups`` are the API groups that have a kind of this name."""

    kind: str
    groups: tuple[str, ...]
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """As people say it: ``Deployment shop/web``."""
        return f"{self.kind} {self.namespace}/{self.name}"


def parse(text: str, namespace: str, embedded: Iterable[EmbeddedKind] = ()) -> Wanted | None:
    """``deployment/web`` as kubectl takes it; None where it is no kind that has pods."""
    kind, slash, name = text.partition("/")
    lowered = kind.partition(".")[0].lower()
    lowered = _SHORT.get(lowered, lowered)
    known = {*TEMPLATED, *((each.api_version.rpartition("/")[0], each.kind) for each in embedded)}
    found = sorted((group, each) for group, each in known if each.lower() in (lowered, lowered.removesuffix("s")))
    if not slash or not name or "/" in name or not found:
        return None
    chosen = min(each for _, each in found)
    groups = tuple(group for group, each in found if each == chosen)
    return Wanted(kind=chosen, groups=groups, namespace=namespace, name=name)


def in_file(wanted: Wanted, file: str) -> Raw | None:
    """The object as the snapshot has it.

    Errors: Stopped with exit code 3.
    """
    try:
        with open_cluster_file(file) as stream:
            for item in read_items(stream, file):
                group = (item.of.api_version or "").rpartition("/")[0]
                if item.of.kind == wanted.kind and group in wanted.groups:
                    meta = _NAMED.decode(item.raw).meta
                    if (meta.namespace, meta.name) == (wanted.namespace, wanted.name):
                        return item.raw
    except (OSError, SnapshotError, ValueError) as error:
        raise CommandError(str(error), Exit.UNREADABLE) from error
    return None


def in_cluster(wanted: Wanted, server: ApiServer, source: str) -> Mapping[str, object] | None:
    """The object as the API server has it; None where there is none.

    Errors: Stopped with exit code 4 where it does not answer, or refuses.
    """
    for group in wanted.groups:
        found = _located(wanted, group, server, source)
        if found is None:
            continue
        version, plural = found
        path = f"{group_path(version)}/namespaces/{quote(wanted.namespace)}/{plural}/{quote(wanted.name)}"
        answer = _get(server, path, source)
        if answer is not None:
            return {**answer, "apiVersion": version, "kind": wanted.kind}
    return None


def _located(wanted: Wanted, group: str, server: ApiServer, source: str) -> tuple[str, str] | None:
    """The version of the API that serves the kind, and its plural; None for one that this API server does not have."""
    if group in _BUILT_IN_GROUPS:
        return (f"{group}/v1" if group else "v1"), f"{wanted.kind.lower()}s"
    served = _get(server, f"/apis/{group}", source) or {}
    preferred = served.get("preferredVersion")
    version = preferred.get("groupVersion") if isinstance(preferred, dict) else None
    listed = (_get(server, group_path(version), source) or {}).get("resources") if isinstance(version, str) else None
    for each in listed if isinstance(listed, list) else ():
        name = each.get("name")
        if each.get("kind") == wanted.kind and isinstance(name, str) and "/" not in name:
            return str(version), name
    return None


def _get(server: ApiServer, path: str, source: str) -> Mapping[str, object] | None:
    try:
        status, answer = server.request("GET", path)
    except ClusterError as error:
        raise CommandError(f"{source}: {error}", Exit.CLUSTER) from error
    if status == HTTPStatus.OK:
        return answer
    if status == HTTPStatus.NOT_FOUND:
        return None
    raise CommandError(f"{source}: {status} {answer.get('message') or HTTPStatus(status).phrase}", Exit.CLUSTER)
