"""Evaluate costly objects for the server that started this process.

    python -m webhook.server.costly.process DESCRIPTOR

It has no index, and sends queries of the cluster to the server. It ends with the server, and is killed when a job takes
too long.
"""

import contextlib
import faulthandler
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any, BinaryIO

from msgspec.structs import replace

from webhook.allocator import give_memory_back, keep_large_blocks_apart
from webhook.core.budget import Budget
from webhook.core.index.nodes import NodeRow, NodeView
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.index.remote_index import IndexQuestion, judge_remotely
from webhook.core.review.decision import Decision
from webhook.core.review.review import review
from webhook.server.costly.job import LENGTH, Answers, NewView, NodesReference, Ready, ReviewJob, pack, unpack

# The server has priority for the container's memory: above this limit, the job fails.
_MOST_BYTES = 256 * 1024 * 1024
# CPU time: waiting for the CPU costs nothing. Quick rules finish a little before the kernel ends the process.
_WORK_SECONDS, _MOST_SECONDS = 0.4, 0.5
_NICE = 5  # ordinary reviews have priority
# The server kills a hanging process. This limit holds without the server.
_LONGEST_SECONDS = 5


class ServerLink:
    """The connection from a review process to the server.

    The review process sends its queries of the index through it, as an `IndexClient` (`core.index.remote_index`).
    """

    def __init__(self, connected: socket.socket, stream: BinaryIO) -> None:
        self._socket, self._stream = connected, stream
        self._nodes = NodesReference(-1)
        self._view = NodeView((), 0, ())

    def all(self, questions: Sequence[IndexQuestion]) -> tuple[int, Sequence[object]]:
        """Implement `IndexClient`."""
        self.send(questions)
        reply: Answers = self.receive()
        return reply.revision, [self._view if answer == self._nodes else answer for answer in reply.answers]

    def send(self, message: object) -> None:
        self._socket.sendall(pack(message))

    def receive(self) -> Any:  # noqa: ANN401 any message of the server
        """Return the server's next message. Raises EOFError if the server has gone.

        A message with new nodes is stored, and not returned.
        """
        message = self._next()
        if not isinstance(message, NewView):
            return message
        rows: list[NodeRow | None] = []
        while len(rows) < message.size:
            rows += self._next()
        self._nodes, self._view = NodesReference(message.number), NodeView(rows, message.live, message.keys)
        return self.receive()

    def _next(self) -> Any:  # noqa: ANN401 as above
        head = self._stream.read(LENGTH.size)
        if len(head) < LENGTH.size:
            raise EOFError
        return unpack(self._stream.read(*LENGTH.unpack(head)))


def decide(job: ReviewJob, server: ServerLink) -> Decision:
    """Return the decision of `review` for a job. The server process answers the cluster queries."""
    context = replace(job.context, budget=Budget(clock=time.process_time).at_most(_WORK_SECONDS))

    def judge(index: ReadOnlyIndex) -> Decision:
        return review(job.request, replace(context, index=index), waited=job.waited)

    return judge_remotely(judge, server)


def work(server: ServerLink) -> None:
    """Evaluate jobs from the server in this process, until the connection to the server ends."""
    with contextlib.suppress(EOFError, ConnectionError):
        server.send(Ready())
        while True:
            job: ReviewJob = server.receive()
            signal.alarm(_LONGEST_SECONDS)
            signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS)
            server.send(Ready())
            answer: Decision | Exception
            try:
                answer = decide(job, server)
            except (EOFError, ConnectionError):
                raise
            except Exception as error:  # noqa: BLE001 the server reports and logs it
                answer = error
            server.send(answer)
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
            del job, answer
            give_memory_back()  # otherwise an idle process keeps the memory of its largest object


def main() -> None:
    faulthandler.enable()
    keep_large_blocks_apart()
    os.nice(_NICE)
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
    with socket.socket(fileno=int(sys.argv[1])) as connected, connected.makefile("rb") as stream:
        work(ServerLink(connected, stream))


if __name__ == "__main__":
    main()
