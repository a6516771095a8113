"""What every answer carries, and who gets none."""

import pytest
from console.scans import EVERYTHING
from msgspec.structs import replace

PATHS = ("/", "/workloads", "/domains", "/health", "/static/console.css", "/api/v1/overview", "/nix", "/api/v1/nix")


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_loaded_from_elsewhere_and_nobody_frames_it(browse, path):
    headers = browse(EVERYTHING).get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert {policy[kind] for kind in ("style-src", "script-src", "img-src", "connect-src", "form-action")} == {"'self'"}
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/", "/workloads", "/domains", "/health"])
def test_pages_keep_the_policy(browse, path):
    text = browse(EVERYTHING).get(path).text
    assert [
        word for word in ("<style", " style=", "onclick", "javascript:", "http://", "https://") if word in text
    ] == []
    assert text.count("<script") == 1


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:8080", 200),
        ("127.0.0.1:18080", 200),
        ("[::1]:8080", 200),
        ("[::1]", 200),
        ("LOCALHOST:1", 200),
        ("evil.example", 421),
        ("evil.example:8080", 421),
        ("127.0.0.1.evil.example", 421),
    ],
)
def test_it_answers_by_local_names_alone(browse, host, status):
    """A page elsewhere could have its own name lead to 127.0.0.1, and read what is there."""
    assert browse(EVERYTHING).get("/", headers={"Host": host}).status_code == status


def test_nothing_new_is_not_sent_again(browse):
    client = browse(EVERYTHING)
    first = client.get("/")
    again = client.get("/", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    other = browse(replace(EVERYTHING, source="another")).get("/", headers={"If-None-Match": first.headers["ETag"]})
    assert other.status_code == 200


def test_what_is_not_there_is_said(browse):
    client = browse(EVERYTHING)
    page = client.get("/workload?name=nix")
    assert page.status_code == 404
    assert "The object may have been deleted, or the address is mistyped." in page.text
    assert client.get("/api/v1/nix").json == {"error": "404 Not Found"}
    assert client.get("/static/../app.py").status_code == 404
    assert client.post("/").status_code == 405


@pytest.mark.parametrize(
    ("path", "kind"), [("console.css", "text/css"), ("console.js", "text/javascript"), ("icon.svg", "image/svg+xml")]
)
def test_files_come_with_their_kind(browse, path, kind):
    answer = browse(EVERYTHING).get(f"/static/{path}")
    assert (answer.status_code, answer.mimetype) == (200, kind)
    assert answer.headers["ETag"]


def test_only_reading_is_allowed(browse):
    client = browse(EVERYTHING)
    for method in ("post", "put", "patch", "delete"):
        for path in ("/", "/what-if", "/api/v1/what-if", "/api/v1/overview"):
            assert getattr(client, method)(path).status_code == 405


def test_pages_of_a_snapshot_do_not_follow_it(browse):
    assert "data-live" not in browse(EVERYTHING).get("/").text
    assert "data-live" in browse(replace(EVERYTHING, live=True)).get("/").text
