"""The kinds with pod templates that an API server has: built-in ones, and custom resources of known kinds."""

from collections.abc import Iterator, Mapping

from webhook.cluster.connection import ApiServer, RefusedError
from webhook.cluster.resources import Resource, group_path, native, watched
from webhook.cluster.wire import read_group_versions, read_plurals
from webhook.core.policy.policy import Policy
from webhook.core.workloads.kinds import NATIVE, TEMPLATED, GroupKind, group_of
from webhook.core.workloads.operators import OPERATED


def with_workloads(server: ApiServer, policy: Policy) -> tuple[Resource, ...]:
    """The kinds that the webhook watches, and every other kind with pod templates that the API server has.

    Errors: ClusterError; RefusedError if the server does not list its groups.
    """
    resources: dict[GroupKind, Resource] = {}
    for resource in (*watched(policy), *map(native, NATIVE), *_custom(server)):
        group = group_of(resource.api_versions[0])
        resources.setdefault((group, resource.kind), resource)
    return tuple(resources.values())


def _custom(server: ApiServer) -> Iterator[Resource]:
    """The custom resources of known kinds that the server has, each in the first version that serves it."""
    with server.open("/apis") as stream:
        groups = read_group_versions(stream.body())
    for group, versions in groups.items():
        wanted = {kind for api_group, kind in (*TEMPLATED, *OPERATED) if api_group == group and "." in group}
        for version in versions:
            if not wanted:
                break
            plurals = _plurals(server, version)
            for kind in sorted(wanted & plurals.keys()):
                yield Resource(kind=kind, name=plurals[kind], api_versions=(version,), required=False)
            wanted -= plurals.keys()


def _plurals(server: ApiServer, api_version: str) -> Mapping[str, str]:
    try:
        with server.open(group_path(api_version)) as stream:
            return read_plurals(stream.body())
    except RefusedError:
        return {}  # an aggregated API whose server is down, or a CRD that has just gone
