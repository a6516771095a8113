"""What the fake API server does with single objects: get, create, server-side apply, delete."""

import contextlib
import copy
import http.server
import json
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

REPORTS = {
    "/apis/openreports.io/v1alpha1": ("reports", "Report"),
    "/apis/wgpolicyk8s.io/v1alpha2": ("policyreports", "PolicyReport"),
}


COST = "controller.kubernetes.io/pod-deletion-cost"


class Write(NamedTuple):
    method: str
    resource: str
    namespace: str
    name: str
    query: dict


class Target(NamedTuple):
    """An object by its path, or with an empty name where one is to be made."""

    group: str
    resource: str
    namespace: str
    name: str


def target(path):
    """``/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME``, or its status; None for any other path."""
    group, found, rest = path.removesuffix("/status").partition("/namespaces/")
    parts = rest.split("/")
    if not found or len(parts) not in {2, 3}:
        return None
    return Target(group, parts[1], parts[0], parts[2] if len(parts) > 2 else "")


def _fixed(event, change):
    """What of an event cannot be changed: all but its series (core/validation/events.go ``ValidateEventUpdate``)."""
    return [key for key, value in change.items() if key != "series" and event.get(key) != value]


class Writes(http.server.BaseHTTPRequestHandler):
    """For a handler that has `status` and `json`, and whose server has the `FakeApi`."""

    def do_POST(self):
        self._write(self._create)

    def do_PATCH(self):
        self._write(self._apply)

    def do_DELETE(self):
        self._write(self._delete)

    def _write(self, act):
        api, url = self.server.api, urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
        at = target(url.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        write = Write(self.command, at.resource, at.namespace, at.name or body["metadata"]["name"], query)
        with contextlib.suppress(ConnectionError):
            fault = api.fault_for_write(write)
            if fault is not None and fault(self, write):
                return
            if at.resource in api.absent:
                self.status(404, "the server could not find the requested resource")
            elif at.resource in api.forbidden:
                verb = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}[self.command]
                self.status(403, f'{at.resource} is forbidden: User "u" cannot {verb} resource "{at.resource}"')
            else:
                api.writes.append(write)
                act(write, body)

    def _create(self, write, body):
        api = self.server.api
        with api.lock:
            if (write.namespace, write.name) in api.objects[write.resource]:
                self.status(409, f'{write.resource} "{write.name}" already exists')
                return
            self.json(201, self._put(write, body))

    def _apply(self, write, body):
        api, merging = self.server.api, self.headers["Content-Type"] == "application/merge-patch+json"
        if not merging:
            assert self.headers["Content-Type"] == "application/apply-patch+yaml"
            assert write.query["fieldManager"]
        with api.lock:
            known = api.objects[write.resource].get((write.namespace, write.name), {})
            if write.resource == "pods":
                self._apply_annotations(write, body, known)
                return
            there = known if merging else {}
            if urlsplit(self.path).path.endswith("/status"):
                # Nothing but the status is taken.
                there, body = known, {"status": body["status"]}
            fixed = _fixed(there, body) if merging and write.resource == "events" else []
            if fixed:
                self.status(422, f"Event is invalid: {fixed[0]}: field is immutable")
                return
            self.json(200, self._put(write, {**there, **body}))

    def _apply_annotations(self, write, body, pod):
        """Server-side apply of a pod's annotations: its uid is a precondition, and managedFields record the writer."""
        assert (write.query["fieldManager"], write.query["force"]) == ("evenspread-scale-in", "false")
        assert {*body["metadata"]} <= {"name", "namespace", "uid", "annotations"}
        assert {*body} == {"apiVersion", "kind", "metadata"}
        meta, applied = pod.get("metadata", {}), body["metadata"].get("annotations", {})
        assert {*applied} <= {COST}
        managers = [row["manager"] for row in meta.get("managedFields", ())]
        if meta.get("uid") != body["metadata"]["uid"] or {*managers} - {"evenspread-scale-in"}:
            self.status(409, "Apply failed with a conflict")
            return
        self.server.api.pod_writes.append(body)
        fields = {"f:metadata": {"f:annotations": {f"f:{COST}": {}}}}
        ours = [{"manager": "evenspread-scale-in", "fieldsV1": fields}] if applied else []
        kept = {key: value for key, value in (meta.get("annotations") or {}).items() if key != COST}
        changed = {**meta, "annotations": kept | applied, "managedFields": ours}
        self.json(200, self._put(write, {**pod, "metadata": changed}))

    def _delete(self, write, _body):
        api = self.server.api
        with api.lock:
            if (write.namespace, write.name) not in api.objects[write.resource]:
                self.status(404, f'{write.resource} "{write.name}" not found')
                return
            api.delete(write.resource, write.name, write.namespace)
            self.json(200, {"kind": "Status", "status": "Success"})

    def _put(self, write, body):
        fields = copy.deepcopy({key: value for key, value in body.items() if key not in {"apiVersion", "kind"}})
        return self.server.api.put(write.resource, write.name, write.namespace, **fields)

    def get_one(self, at):
        """Answer with one object."""
        with self.server.api.lock:
            made = self.server.api.objects[at.resource].get((at.namespace, at.name))
        if made is None:
            self.status(404, f'{at.resource} "{at.name}" not found')
        else:
            self.json(200, made)

    def get_some(self, at, query):
        """Answer with a page of a namespace's objects with these labels, or this reason. A token is an offset."""
        if at.resource == "configmaps" and at.resource in self.server.api.forbidden:
            self.status(403, f'{at.resource} is forbidden: User "u" cannot list resource "{at.resource}"')
            return
        wanted = {tuple(each.split("=")) for each in query.get("labelSelector", "").split(",")}
        with self.server.api.lock:
            known = self.server.api.objects[at.resource].items()
            items = [one for (namespace, _), one in known if namespace == at.namespace]
            if "fieldSelector" in query:
                items = [one for one in items if query["fieldSelector"] == f"reason={one['reason']}"]
            else:
                items = [one for one in items if wanted <= set((one["metadata"].get("labels") or {}).items())]
        begin = int(query.get("continue", 0))
        end = begin + int(query.get("limit", len(items)))
        meta = {"continue": str(end)} if end < len(items) else {}
        self.json(200, {"metadata": meta, "items": items[begin:end]})
