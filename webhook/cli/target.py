"""The target of a command: files, or one object of the cluster as KIND/NAME."""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import click
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.cli.cluster_source import ClusterSource
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import ClusterError, status_text
from webhook.cluster.resources import group_path
from webhook.core.api.types import TypeMeta
from webhook.core.text import object_title
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
    """An object of the cluster. ``groups`` are all API groups with a kind of this name."""

    kind: str
    groups: tuple[str, ...]
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """The object's name in messages."""
        return object_title(self.kind, self.namespace, self.name)

    def is_in(self, item: Item) -> bool:
        """Whether a raw JSON object has this kind, namespace and name."""
        api_version, kind = item.type_names
        if kind != self.kind or group_of(api_version) not in self.groups:
            return False
        meta = read_meta(item.raw)
        return (meta.namespace, meta.name) == (self.namespace, self.name)


class Target(Struct, frozen=True, kw_only=True):
    """Files, or one object. With neither, the target is all workloads of the cluster."""

    files: tuple[str, ...] = ()
    named: NamedObject | None = None

    @property
    def everything(self) -> bool:
        """Whether the target is all workloads of the cluster."""
        return not self.files and self.named is None

    def in_namespace(self, namespace: str) -> "Target":
        """The target with its object in this namespace."""
        return self if self.named is None else replace(self, named=replace(self.named, namespace=namespace))


def read_target(words: Sequence[str], namespace: str, embedded: Iterable[EmbeddedKind]) -> Target:
    """Parse the arguments of a command: files, KIND/NAME or KIND NAME. ``embedded`` are the policy's kinds with pods.

    Raises:
        click.UsageError: The words are neither files nor an object.
    """
    missing = [word for word in words if word != STDIN and not Path(word).exists()]
    if not missing:
        return Target(files=tuple(words))
    named = None if words[2:] else parse_object("/".join(words), namespace, embedded)
    if named is not None:
        return Target(named=named)
    for word in missing:
        if parse_object(word, namespace, embedded) is None:
            what = "a file nor a workload such as deployment/web"
            raise click.UsageError(f"{word[:64]!r} is neither {what}")
    raise click.UsageError("use one KIND/NAME at a time; for several workloads, use their manifests or --all")


def parse_object(text: str, namespace: str, embedded: Iterable[EmbeddedKind] = ()) -> NamedObject | None:
    """Parse ``deployment/web`` like kubectl. None for a kind without pods."""
    kind, slash, name = text.partition("/")
    lowered = kind.partition(".")[0].lower()
    lowered = _SHORT.get(lowered, lowered)
    known = {*TEMPLATED, *(group_kind(own.api_version, own.kind) for own in embedded)}
    matches = sorted((group, kind) for group, kind in known if kind.lower() in (lowered, lowered.removesuffix("s")))
    if not slash or not name or "/" in name or not matches:
        return None
    chosen = min(kind for _, kind in matches)
    groups = tuple(group for group, kind in matches if kind == chosen)
    return NamedObject(kind=chosen, groups=groups, namespace=namespace, name=name)


def find_object(
    named: NamedObject, known: ClusterSource, *, guessed: bool
) -> tuple[Raw | Mapping[str, object], TypeMeta]:
    """Find the object in the objects read from the cluster, else on the API server. Returns it with its type.

    ``guessed`` is whether the command line has no namespace.

    Raises:
        CommandError: The object does not exist, or the API server does not answer.
    """
    for item in filter(named.is_in, known.kept):
        return item.raw, item.of
    stored = None if known.server is None else get_object(named, known.server, known.source)
    if stored is None:
        hint = "; use -n for another namespace" * guessed
        raise CommandError(f"{known.source}: no {named.title}{hint}", Exit.UNREADABLE)
    return stored, stated_type(stored)


def get_object(wanted: NamedObject, server: ApiServer, source: str) -> Mapping[str, object] | None:
    """Get the object from the API server. None if it does not exist.

    Raises CommandError with exit code 4 if the API server does not answer or refuses.
    """
    for group in wanted.groups:
        location = _served_resource(wanted, group, server, source)
        if location is None:
            continue
        version, resource = location
        path = f"{group_path(version)}/namespaces/{quote(wanted.namespace)}/{resource}/{quote(wanted.name)}"
        answer = _get(server, path, source)
        if answer is not None:
            return {**answer, "apiVersion": version, "kind": wanted.kind}
    return None


def _served_resource(wanted: NamedObject, group: str, server: ApiServer, source: str) -> tuple[str, str] | None:
    """The API version and the plural of the kind. None if the API server does not serve it."""
    if group in NATIVE_GROUPS:
        return native_version((group, wanted.kind)), resource_name((group, wanted.kind))
    served = _get(server, f"/apis/{group}", source) or {}
    preferred = served.get("preferredVersion")
    version = preferred.get("groupVersion") if isinstance(preferred, dict) else None
    resources = (_get(server, group_path(version), source) or {}).get("resources") if isinstance(version, str) else None
    for resource in resources if isinstance(resources, list) else ():
        name = resource.get("name")
        if resource.get("kind") == wanted.kind and isinstance(name, str) and "/" not in name:
            return str(version), name
    return None


def _get(server: ApiServer, path: str, source: str) -> Mapping[str, object] | None:
    try:
        answer = server.send("GET", path)
    except ClusterError as error:
        raise CommandError(f"{source}: {error}", Exit.CLUSTER) from error
    if answer.status == HTTPStatus.OK:
        return answer.content
    if answer.status == HTTPStatus.NOT_FOUND:
        return None
    message = answer.content.get("message")
    text = f"{answer.status} {message}" if message else status_text(answer.status)
    raise CommandError(f"{source}: {text}", Exit.CLUSTER)
