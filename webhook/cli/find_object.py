"""Find one object of a cluster by kind and name: on the API server, or in a snapshot."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from urllib.parse import quote

from msgspec import Struct

from webhook.cli.exit_codes import CommandError, Exit
from webhook.cluster.connection import ApiServer, ClusterError, status_text
from webhook.cluster.resources import group_path
from webhook.core.explain.edit_target import object_title
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kinds import (
    KINDS,
    NATIVE_GROUPS,
    TEMPLATED,
    group_kind,
    group_of,
    native_version,
    resource_name,
)
from webhook.core.workloads.reading import read_meta
from webhook.snapshot.load import Item

# kubectl's abbreviations.
_SHORT = {row.short: kind[1].lower() for kind, row in KINDS.items() if row.short}


class Wanted(Struct, frozen=True, kw_only=True):
    """The object that was asked for; ``groups`` are the API groups that have a kind of this name."""

    kind: str
    groups: tuple[str, ...]
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """Its name in messages."""
        return object_title(self.kind, self.namespace, self.name)


def parse(text: str, namespace: str, embedded: Iterable[EmbeddedKind] = ()) -> Wanted | None:
    """Read ``deployment/web`` as kubectl does; None if it is not a kind that has pods."""
    kind, slash, name = text.partition("/")
    lowered = kind.partition(".")[0].lower()
    lowered = _SHORT.get(lowered, lowered)
    known = {*TEMPLATED, *(group_kind(each.api_version, each.kind) for each in embedded)}
    found = sorted((group, each) for group, each in known if each.lower() in (lowered, lowered.removesuffix("s")))
    if not slash or not name or "/" in name or not found:
        return None
    chosen = min(each for _, each in found)
    groups = tuple(group for group, each in found if each == chosen)
    return Wanted(kind=chosen, groups=groups, namespace=namespace, name=name)


def is_wanted(wanted: Wanted, item: Item) -> bool:
    """Whether this object of a snapshot is the one that is asked for."""
    if item.of.kind != wanted.kind or group_of(item.of.api_version or "") not in wanted.groups:
        return False
    meta = read_meta(item.raw)
    return (meta.namespace, meta.name) == (wanted.namespace, wanted.name)


def in_cluster(wanted: Wanted, server: ApiServer, source: str) -> Mapping[str, object] | None:
    """The object on the API server; None if it does not exist.

    Errors: CommandError with exit code 4 if the API server does not answer, or refuses.
    """
    for group in wanted.groups:
        found = _located(wanted, group, server, source)
        if found is None:
            continue
        version, resource = found
        path = f"{group_path(version)}/namespaces/{quote(wanted.namespace)}/{resource}/{quote(wanted.name)}"
        answer = _get(server, path, source)
        if answer is not None:
            return {**answer, "apiVersion": version, "kind": wanted.kind}
    return None


def _located(wanted: Wanted, group: str, server: ApiServer, source: str) -> tuple[str, str] | None:
    """The API version that serves the kind, and its plural; None if the API server does not have it."""
    if group in NATIVE_GROUPS:
        return native_version((group, wanted.kind)), resource_name((group, wanted.kind))
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
    message = answer.get("message")
    raise CommandError(f"{source}: {f'{status} {message}' if message else status_text(status)}", Exit.CLUSTER)
