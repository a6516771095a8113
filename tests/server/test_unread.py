"""Clients that ask and never read what they are answered."""

import contextlib
import socket

import pytest
from server.attack import BODY, answers
from server.conftest import eventually, posted, serving

PIPELINED = posted(BODY) * 100
CLIENTS = 4


@pytest.mark.slow
def test_who_reads_no_answers_is_ended_and_fills_no_memory():
    shorter = "from webhook.server.http import connection; connection.UNREAD_SECONDS = 2.0; "
    with serving(before=shorter) as server:
        answers(server)
        before = server.resident()
        context = server.tls()
        with contextlib.ExitStack() as stack:
            for _ in range(CLIENTS):
                plain = stack.enter_context(socket.socket())
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                plain.settimeout(10)
                plain.connect(("127.0.0.1", server.port))
                connection = stack.enter_context(context.wrap_socket(plain, server_hostname="localhost"))
                connection.settimeout(1)
                with contextlib.suppress(OSError):
                    while True:
                        connection.sendall(PIPELINED)
            assert server.resident() - before < CLIENTS * 2
            eventually(lambda: server.metric("evenspread_open_connections") == 0)
        assert answers(server) < 5
        assert server.metric('evenspread_connections_ended_total{port="admission",reason="late"}') == CLIENTS
