"""What an HTTP/1.1 parser must refuse, and what it must take, against the real process over TLS.

Source: RFC 9112; the shapes are those of published smuggling advisories.
"""

import contextlib
import json
import socket
import time

import pytest
from server.conftest import posted, read_reply, review

MIB = 1024 * 1024
BODY = review()
CHUNKED = "Transfer-Encoding: chunked"
HEAD = b"POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def chunks(body, size=4096):
    parts = (body[at : at + size] for at in range(0, len(body), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def chunked(body, *lines):
    return HEAD + b"".join(line.encode() + b"\r\n" for line in (CHUNKED, *lines)) + b"\r\n" + body


def stated(*lines):
    return HEAD + b"".join(lines) + b"\r\n" + BODY


LENGTH = b"Content-Length: %d\r\n" % len(BODY)
GET = b"GET /x HTTP/1.1\r\nHost: localhost\r\n"

TABLE = [
    pytest.param(posted(BODY), [200], id="plain"),
    pytest.param(posted(review(size=3 * MIB)), [200], id="3 MiB"),
    pytest.param(posted(review(size=8 * MIB)), [200], id="8 MiB with its length"),
    pytest.param(posted(b"", length=8 * MIB), [413], id="8 MiB announced and not sent"),
    pytest.param(posted(b"", length=10**400), [413], id="a length of 400 digits"),
    pytest.param(stated(b"Content-Length: " + b"9" * 5000 + b"\r\n"), [400], id="a length of 5,000 digits"),
    pytest.param(chunked(chunks(review(size=6 * 1024))), [200], id="chunked 6 KiB"),
    pytest.param(chunked(chunks(review(size=8 * MIB), 65536)), [200], id="chunked 8 MiB"),
    pytest.param(posted(b"", "/validate", "Expect: 100-continue", length=8 * MIB), [413], id="Expect, too large"),
    pytest.param(posted(BODY).replace(b"HTTP/1.1", b"HTTP/1.0"), [200], id="HTTP/1.0"),
    pytest.param(posted(BODY) * 3, [200, 200, 200], id="three pipelined"),
    pytest.param(stated(LENGTH, b"Transfer-Encoding: chunked\r\n"), [400], id="both lengths"),
    pytest.param(stated(b"Transfer-Encoding: xchunked\r\n"), [501], id="an unknown coding"),
    pytest.param(stated(b"Transfer-Encoding: chunked, identity\r\n"), [400], id="chunked not last"),
    pytest.param(stated(b"Transfer-Encoding : chunked\r\n"), [400], id="a space before the colon"),
    pytest.param(stated(LENGTH, LENGTH.replace(b": ", b": 1")), [400], id="two lengths"),
    pytest.param(stated(b"Content-Length: +5\r\n"), [400], id="+5"),
    pytest.param(stated(b"Content-Length: -1\r\n"), [400], id="-1"),
    pytest.param(stated(b"Content-Length: 1_0\r\n"), [400], id="1_0"),
    pytest.param(stated(b"Content-Length: 0x10\r\n"), [400], id="0x10"),
    pytest.param(posted(BODY).replace(b"\r\n", b"\n"), [400], id="LF only"),
    pytest.param(stated(LENGTH, b"X-Folded: a\r\n b\r\n"), [400], id="obs-fold"),
    pytest.param(stated(LENGTH, b"no colon\r\n"), [400], id="no colon"),
    pytest.param(stated(LENGTH, b"X-Nul: a\0b\r\n"), [400], id="NUL in a header"),
    pytest.param(stated(LENGTH, b"X\0: a\r\n"), [400], id="NUL in a name"),
    pytest.param(posted(BODY).replace(b"POST", b"P@ST", 1), [400], id="a bad method"),
    pytest.param(b"nonsense\r\n\r\n", [400], id="a bad line"),
    pytest.param(b"\0\1\2\3\r\n\r\n", [400], id="bytes"),
    pytest.param(posted(BODY).replace(b"HTTP/1.1", b"HTTP/9.9"), [400], id="HTTP/9.9"),
    pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400], id="the preface of h2"),
    pytest.param(posted(BODY, "/" + "a" * 10_240), [414], id="a URI of 10 KB"),
    pytest.param(stated(LENGTH, *(b"X-%d: a\r\n" % n for n in range(200))), [431], id="200 headers"),
    pytest.param(stated(LENGTH, b"X: " + b"a" * 20_480 + b"\r\n"), [431], id="a header of 20 KB"),
    pytest.param(HEAD + b"X: y\r\n" * 400_000, [431], id="endless headers"),
    pytest.param(chunked(b"xyz\r\nx\r\n"), [400], id="a chunk size that is none"),
    pytest.param(chunked(b"1;" + b"e" * MIB + b"\r\nx\r\n0\r\n\r\n"), [400], id="a chunk extension of 1 MiB"),
    pytest.param(chunked(b"5\r\nabcdefgh\r\n0\r\n\r\n"), [400], id="a chunk longer than its size"),
    pytest.param(GET + b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n", [404], id="h2c"),
    pytest.param(
        GET
        + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        + b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        [404],
        id="WebSocket",
    ),
    pytest.param(b"GET /validate HTTP/1.1\r\nHost: localhost\r\n\r\n", [405], id="GET on a route"),
    pytest.param(posted(BODY, "/elsewhere"), [404], id="another path"),
    pytest.param(posted(BODY, media="text/plain"), [415], id="not JSON by its type"),
    pytest.param(posted(BODY).replace(b"Content-Type: application/json\r\n", b""), [415], id="no type"),
    pytest.param(posted(BODY, media="application/json; charset=utf-8"), [200], id="a charset"),
    pytest.param(posted(b"{}"), [400], id="JSON but no review"),
    pytest.param(posted(b"\xff\xfe" * 100), [400], id="not JSON"),
    pytest.param(
        b"POST /validate HTTP/1.1\r\nContent-Type: application/json\r\n" + LENGTH + b"\r\n" + BODY, [200], id="no Host"
    ),
]


@pytest.mark.parametrize(("sent", "statuses"), TABLE)
def test_framing(server, sent, statuses):
    before = server.worker
    with server.connect() as connection:
        with contextlib.suppress(OSError):  # refused before all was sent; the answer must be readable nevertheless
            connection.sendall(sent)
        answered = replies_of(connection, len(statuses))
    assert [reply.status for reply in answered] == statuses
    assert not any("server" in reply.headers for reply in answered)
    assert server.worker == before
    assert healthy(server)


def replies_of(connection, wanted):
    found = []
    with connection.makefile("rb") as stream:
        while len(found) < wanted:
            reply = read_reply(stream)
            if reply is None:
                break
            found.append(reply)
    return found


def healthy(server):
    with server.connect() as connection, connection.makefile("rb") as stream:
        connection.sendall(posted(review("after")))
        reply = read_reply(stream)
    return json.loads(reply.body)["response"] == {"uid": "after", "allowed": True}


def test_a_small_body_that_expects_100_is_asked_for(server):
    with server.connect() as connection, connection.makefile("rb") as stream:
        connection.sendall(posted(b"", "/validate", "Expect: 100-continue", length=len(BODY)))
        assert stream.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert stream.readline() == b"\r\n"
        connection.sendall(BODY)
        assert read_reply(stream).status == 200


def test_a_client_that_leaves_in_its_body_leaves_nothing_behind(server):
    with server.connect() as connection:
        connection.sendall(posted(BODY[:20], length=len(BODY)))
    assert healthy(server)


def test_plain_http_on_the_tls_port_gets_no_http(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=4) as connection:
        connection.sendall(posted(BODY))
        assert not b"".join(iter(lambda: _received(connection), b"")).startswith(b"HTTP/")
    assert healthy(server)


def _received(connection):
    try:
        return connection.recv(4096)
    except OSError:
        return b""


def test_a_refused_body_is_answered_before_it_is_read(server):
    with server.connect() as connection, connection.makefile("rb") as stream:
        connection.sendall(posted(b"", length=8 * MIB))
        reply = read_reply(stream)
    assert reply.status == 413
    assert reply.headers["connection"] == "close"
    assert reply.body == b"the body has 8388608 bytes; the limit is 7340032\n"


@pytest.mark.parametrize("size", [1, 7, 100, 250, len(posted(BODY)) - 1], ids=lambda size: f"{size} bytes at a time")
def test_a_review_in_pieces_is_answered_like_a_whole_one(server, size):
    whole = posted(BODY)
    with server.connect() as connection, connection.makefile("rb") as stream:
        for _ in range(2):
            connection.sendall(whole)
            expected = read_reply(stream)
            for at in range(0, len(whole), size):
                connection.sendall(whole[at : at + size])
            answered = read_reply(stream)
            assert (answered.status, answered.body) == (expected.status, expected.body)
            assert answered.headers.keys() == expected.headers.keys()


def test_what_is_pipelined_behind_a_refusal_is_not_read(server):
    with server.connect() as connection:
        connection.sendall(posted(BODY) + b"nonsense\r\n\r\n" + posted(BODY))
        assert [reply.status for reply in replies_of(connection, 9)] == [200, 400]


def test_a_hundred_pipelined_reviews_are_answered_in_their_order(server):
    with server.connect() as connection:
        connection.sendall(b"".join(posted(review(f"u-{number}")) for number in range(100)))
        uids = [json.loads(reply.body)["response"]["uid"] for reply in replies_of(connection, 100)]
    assert uids == [f"u-{number}" for number in range(100)]


def test_blanks_before_a_fault_are_read_once(server):
    """Each way to share 8,000 blanks between the space before a value and the value took 0.6 s of the event loop."""
    began = time.monotonic()
    for _ in range(10):
        with server.connect() as connection:
            connection.sendall(stated(b"X-Blank: " + b" " * 8000 + b"\x01\r\n"))
            assert [reply.status for reply in replies_of(connection, 9)] == [400]
    assert time.monotonic() - began < 3


def test_a_client_that_says_close_is_closed(server):
    with server.connect() as connection:
        connection.sendall(posted(BODY, "/validate", "Connection: close"))
        answered = replies_of(connection, 9)
    assert [(reply.status, reply.headers["connection"]) for reply in answered] == [(200, "close")]
