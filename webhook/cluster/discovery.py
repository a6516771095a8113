"""Decode the API server's discovery: groups, versions and resources."""

from collections.abc import Mapping
from http import HTTPStatus

from msgspec import Struct

from webhook.cluster.errors import RefusedError
from webhook.cluster.wire import decoded
from webhook.logs import bounded


class _NamedResource(Struct, frozen=True):
    name: str
    kind: str


class _ResourceList(Struct, frozen=True):
    resources: tuple[_NamedResource, ...] = ()


class _Version(Struct, frozen=True, rename="camel"):
    group_version: str = ""


class _ApiGroup(Struct, frozen=True, rename="camel"):
    name: str
    versions: tuple[_Version, ...] = ()
    preferred_version: _Version = _Version()


class _GroupList(Struct, frozen=True):
    groups: tuple[_ApiGroup, ...] = ()


def read_plurals(body: bytes) -> Mapping[str, str]:
    """Return the plural of each kind of a group."""
    resources = decoded(body, _ResourceList).resources  # a slash in the name marks a subresource
    return {resource.kind: resource.name for resource in reversed(resources) if "/" not in resource.name}


def read_plural(body: bytes, kind: str) -> str:
    """Return the plural of a kind from the JSON list of its group's resources.

    Raises RefusedError 404 for an unknown kind.
    """
    plural = read_plurals(body).get(kind)
    if plural is None:
        raise RefusedError(HTTPStatus.NOT_FOUND, f"no {bounded(kind)} in the group")
    return plural


def read_group_versions(body: bytes) -> Mapping[str, tuple[str, ...]]:
    """Return the versions of each group, starting with the preferred version."""
    read = decoded(body, _GroupList).groups
    ordered = {group.name: (group.preferred_version, *group.versions) for group in read}
    return {
        name: tuple(dict.fromkeys(version.group_version for version in versions if version.group_version))
        for name, versions in ordered.items()
    }
