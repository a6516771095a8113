"""An API server that keeps single objects, with their versions; time is what the test says it is."""

import contextlib
import copy
import json
import time
import urllib.parse
from datetime import UTC, datetime, timedelta

import jsonpatch

from webhook.cluster.connection import ApiResponse, ApiServer
from webhook.cluster.errors import ClusterError

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)


class StoredApi(ApiServer):
    """An `ApiServer` that answers from memory. It stores no object of a dry run.

    ``before`` is called with method and path before each request is answered; what it returns, if anything, is
    the answer. It may change what is stored, as somebody else would.
    """

    def __init__(self, **objects):  # connects to nothing
        self.objects = {}
        self.version = 0
        self.now = NOW
        self.asked = []
        self.watches = []
        self.before = lambda _method, _path: None
        for path, content in objects.items():
            self.put(path, content)

    def put(self, path, content):
        self.version += 1
        meta = {**content.get("metadata", {}), "resourceVersion": str(self.version)}
        self.objects[path] = {**copy.deepcopy(content), "metadata": meta}

    def passes(self, **time):
        self.now += timedelta(**time)

    def send(self, method, path, body=None, *, media="application/json"):
        self.asked.append((method, path))
        said = self.before(method, path)
        if isinstance(said, int):
            return self._status(said)
        path, _, query = path.partition("?")
        if media == "application/apply-patch+yaml":
            if "dryRun" in query:
                return ApiResponse(status=200, content=body, date=self.now)
            self.put(path, body)
        elif path not in self.objects:
            return self._status(404)
        elif method == "PUT":
            if body["metadata"]["resourceVersion"] != self.objects[path]["metadata"]["resourceVersion"]:
                return self._status(409)
            self.put(path, json.loads(json.dumps(body)))
        elif method == "PATCH":
            assert media == "application/json-patch+json"
            try:
                self.put(path, jsonpatch.apply_patch(self.objects[path], body))
            except jsonpatch.JsonPatchTestFailed:
                return self._status(422)
        content = copy.deepcopy(self.objects[path])
        if method == "DELETE":
            del self.objects[path]
        return ApiResponse(status=200, content=content, date=self.now)

    @contextlib.contextmanager
    def open(self, path, *, silence_seconds):
        """A watch of one object: an event for each change, without a content that anybody reads."""
        assert silence_seconds > 60, "bookmarks come every minute"
        collection, _, query = path.partition("?")
        (field,) = urllib.parse.parse_qs(query)["fieldSelector"]
        watched = f"{collection}/{field.removeprefix('metadata.name=')}"
        self.watches.append(watched)
        yield Watch(lambda: self.objects.get(watched))

    def writes(self):
        return [path for method, path in self.asked if method != "GET"]

    def _status(self, code):
        return ApiResponse(status=code, content={"kind": "Status", "message": f"says {code}"}, date=self.now)


class Watch:
    """What `Stream` is to who reads lines: ends when it has told of a change, as watches do now and then."""

    def __init__(self, stored):
        self._stored = stored

    def lines(self):
        before = object()
        for _ in range(500):
            now = self._stored()
            if now is not before and now is not None:
                yield [b"an event"]
            before = now
            time.sleep(0.002)


def silent(_method, _path):
    """Nobody is there."""
    raise ClusterError("https://api: no answer in time")
