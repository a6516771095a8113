"""`evenspread doctor` beside a fake API server."""

import json
from urllib.parse import urlsplit

import pytest
from cli.commands.doctor import world as w
from cluster.api import FakeApi


@pytest.fixture(name="api")
def _api():
    with FakeApi(tls=False) as api:
        yield api


@pytest.fixture(name="doctor")
def _doctor(api, run, tmp_path):
    """The command beside a cluster of these objects; gives the lines that are not ok."""

    def doctor(world, *arguments, version="v1.37.1"):
        def answer(handler, _):
            url = urlsplit(handler.path)
            role = "#controller" if url.path == w.PODS and "controller" in url.query else ""
            found = {"/version": {"gitVersion": version}, **world}.get(url.path + role)
            if callable(found):
                found = found()
            if isinstance(found, str):
                page(handler, found)
            elif isinstance(found, tuple) and isinstance(found[1], str):
                page(handler, found[1], found[0])
            elif isinstance(found, tuple):
                handler.json(*found)
            elif found is None:
                handler.status(404, "not found")
            else:
                handler.json(200, found)
            return True

        api.faults.clear()
        api.strike("any", answer, times=10_000)
        code, out, err = run("doctor", "--kubeconfig", api.kubeconfig(tmp_path), "-o", "json", *arguments)
        lines = json.loads(out)
        assert code == any(each["state"] == "problem" for each in lines), err
        return [each for each in lines if each["state"] != "ok"]

    return doctor


def page(handler, text, status=200):
    body = text.encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
