"""Reflectors that follow the fake API server, and what is compared afterwards."""

import contextlib
import json
import threading
import time

from build import pod_names
from cluster.api import KINDS

from webhook.cluster.connection import ApiServer
from webhook.cluster.credentials import Account
from webhook.cluster.feed import Feed
from webhook.cluster.reflector import Pace, Reflector, Timing
from webhook.cluster.resources import BUILT_IN_RESOURCES
from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import LabelSelector, TypeMeta
from webhook.core.index.objects import meta_of
from webhook.core.index.readers import reader

QUICK = Timing(
    watch=(1.0, 1.0),
    silence=0.4,
    list_silence=1.0,
    first_wait=0.01,
    longest_wait=0.05,
    longest_asked=0.2,
    off=0.1,
    steady=0.5,
)
EVERY_POD = compile_selector(LabelSelector())
RESOURCES = {resource.name: resource for resource in BUILT_IN_RESOURCES}


class Table:
    """A sink: what a reflector says there is."""

    def __init__(self):
        self.values = {}
        self.changes = 0
        self.refused = {}  # name -> why: objects that cannot be applied

    def __call__(self, changes):
        left_out = []
        for event, value in changes:
            self.changes += 1
            meta = meta_of(value)
            if event != "DELETED" and meta.name in self.refused:
                left_out.append((meta, self.refused[meta.name]))
                continue
            if event == "DELETED":
                self.values.pop((meta.namespace, meta.name), None)
            else:
                self.values[meta.namespace, meta.name] = value
        return left_out


class Clock(Pace):
    """Time that passes by waiting, so that an hour of failures is quick. What a request takes is not counted."""

    def __init__(self):
        super().__init__()
        self.time = 1000.0
        self.waits = []

    def wait(self, seconds):
        self.waits.append(seconds)
        self.time += seconds

    def now(self):
        return self.time


def server(api, folder):
    return ApiServer(Account(kubeconfig=api.kubeconfig(folder)))


def truth(api, name):
    """What is there, as the index would keep it."""
    api_version, kind = KINDS[name]
    read = reader(TypeMeta(api_version=api_version, kind=kind))
    with api.lock:
        return {key: read.value(_json(made)) for key, made in api.objects[name].items() if not _finished(made)}


def _json(made):

    return json.dumps(made).encode()


def _finished(made):
    return made.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def eventually(holds, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not become so"
        time.sleep(0.005)


@contextlib.contextmanager
def following(api, folder, name="pods", timing=QUICK):
    """A reflector in a thread of its own, and its table."""

    table = Table()
    reflector = Reflector(server(api, folder), RESOURCES[name], table, timing=timing)
    thread = threading.Thread(target=reflector.run, daemon=True)
    thread.start()
    try:
        yield reflector, table
    finally:
        reflector.stop()
        thread.join(5)
        assert not thread.is_alive()


@contextlib.contextmanager
def feeding(api, folder, resources=BUILT_IN_RESOURCES, timing=QUICK):
    feed = Feed(server(api, folder), resources, timing=timing)
    feed.start()
    try:
        yield feed
    finally:
        feed.stop()


def contents(index):
    """All that an index says, by the names of its objects."""
    return {
        "nodes": sorted(node.name for node in index.nodes.all()),
        "namespaces": {name: index.namespaces.labels(name) for name in index.known_namespaces()},
        "services": {name: sorted(map(repr, index.namespaces.services(name))) for name in index.known_namespaces()},
        "owners": {name: sorted(map(repr, index.owners.of_namespace(name))) for name in index.known_namespaces()},
        "pods": {name: sorted(pod_names(index, name)) for name in index.known_namespaces()},
        "counted": {name: sum(index.pods.count(name, EVERY_POD).values()) for name in index.known_namespaces()},
    }
