"""What a connection does where its peer leaves, or reads nothing, at an awkward moment."""

import asyncio
import socket
import time
from types import SimpleNamespace

import pytest
from server.attack import BODY
from server.conftest import posted, replies

from webhook.server.http.connection import Connection

BAD_CHUNK = (
    b"POST /validate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    b"ZZ\r\n",
)


def test_a_fault_behind_the_answer_gets_no_second_answer(server):
    with server.connect() as connection:
        for part in BAD_CHUNK:
            connection.sendall(part)
            time.sleep(0.3)
        assert [reply.status for reply in replies(connection)] == [415]


def test_a_socket_that_was_closed_during_an_answer_ends_the_requests_behind_it():
    async def scenario():
        closed = []
        port = SimpleNamespace(state=SimpleNamespace(draining=False))
        connection = Connection(port, "127.0.0.1")
        connection.transport = SimpleNamespace(is_closing=lambda: True, close=lambda: closed.append(True))
        connection._parser = SimpleNamespace(reset=lambda: None)
        connection._behind += posted(BODY)
        connection.peer = socket.socket()
        connection.peer.close()
        connection.answered(keep=True)
        assert closed

    asyncio.run(scenario())


def test_a_time_limit_of_a_writer_leaves_the_connection_able_to_write():
    async def scenario():
        table = SimpleNamespace(grown=lambda _connection: None)
        connection = Connection(SimpleNamespace(table=table), "127.0.0.1")
        connection.transport = SimpleNamespace(write=lambda _data: None)
        connection.pause_writing()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        waiting = asyncio.ensure_future(connection.write(b"answer"))
        await asyncio.sleep(0)
        connection.resume_writing()
        await waiting

    asyncio.run(scenario())
