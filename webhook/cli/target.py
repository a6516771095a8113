"""What the words of a command line name: files, or one object of the cluster by KIND/NAME, and where it is found."""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import click
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.cli.cluster_source import ClusterSource
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cluster.connection import ApiServer, ClusterError, status_text
from webhook.cluster.resources import group_path
from webhook.core.api.types import TypeMeta
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
from webhook.core.workloads.reading import read_meta, stated_type
from webhook.manifests.reading.files import STDIN
from webhook.snapshot.load import Item

# kubectl's abbreviations.
_SHORT = {row.short: kind[1].lower() for kind, row in KINDS.items() if row.short}


class NamedObject(Struct, frozen=True, kw_only=True):
    """An object of the cluster. ``groups`` are the API groups that have a kind of this name."""

    kind: str
    groups: tuple[str, ...]
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """Its name in messages."""
        return object_title(self.kind, self.namespace, self.name)

    def is_in(self, item: Item) -> bool:
        """Whether this object of a snapshot is the one."""
        if item.of.kind != self.kind or group_of(item.of.api_version or "") not in self.groups:
            return False
        meta = read_meta(item.raw)
        return (meta.namespace, meta.name) == (self.namespace, self.name)


class Target(Struct, frozen=True, kw_only=True):
    """What a command line names: files, or one object. Neither stands for all workloads of the cluster."""

    files: tuple[str, ...] = ()
    named: NamedObject | None = None

    @property
    def everything(self) -> bool:
        """Whether all workloads of the cluster are meant."""
        return not self.files and self.named is None

    def in_namespace(self, namespace: str) -> "Target":
        """The same with the object in another namespace."""
        return self if self.named is None else replace(self, named=replace(self.named, namespace=namespace))


def read_target(words: Sequence[str], namespace: str, embedded: Iterable[EmbeddedKind]) -> Target:
    """Read files, or KIND/NAME, which people write as two words too. ``namespace`` is that of the object.

    Errors: click.UsageError for what is neither.
    """
    missing = [word for word in words if word != STDIN and not Path(word).exists()]
    if not missing:
        return Target(files=tuple(words))
    named = None if words[2:] else parse("/".join(words), namespace, embedded)
    if named is not None:
        return Target(named=named)
    for word in missing:
        if parse(word, namespace, embedded) is None:
            what = "a file nor KIND/NAME of a kind that has pods, as deployment/web"
            raise click.UsageError(f"{word[:64]!r} is neither {what}")
    raise click.UsageError("give one KIND/NAME at a time; several workloads: their manifests as FILE…, or --all")


def parse(text: str, namespace: str, embedded: Iterable[EmbeddedKind] = ()) -> NamedObject | None:
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
    return NamedObject(kind=chosen, groups=groups, namespace=namespace, name=name)


def find(named: NamedObject, known: ClusterSource, *, guessed: bool) -> tuple[Raw | Mapping[str, object], TypeMeta]:
    """The object on the API server or in the snapshot, with its type.

    Args:
        named: The object.
        known: The cluster.
        guessed: Whether nobody named the namespace.

    Raises:
        CommandError: It does not exist, or the API server does not answer.
    """
    for item in filter(named.is_in, known.kept):
        return item.raw, item.of
    found = None if known.server is None else in_cluster(named, known.server, known.source)
    if found is None:
        hint = "; -n names the namespace" * guessed
        raise CommandError(f"{known.source}: no {named.title}{hint}", Exit.UNREADABLE)
    return found, stated_type(found)


def in_cluster(wanted: NamedObject, server: ApiServer, source: str) -> Mapping[str, object] | None:
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


def _located(wanted: NamedObject, group: str, server: ApiServer, source: str) -> tuple[str, str] | None:
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
