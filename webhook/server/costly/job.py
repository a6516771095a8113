"""The messages between the server and a process for costly objects, over a socket.

    server                              process
                               <-       Ready          once
    NewView, rows of it …      ->                      after each change of the nodes
    ReviewJob                  ->
                               <-       Ready          started
                               <-       questions      for each query of a rule
    Answers                    ->
                               <-       Decision, or the Exception raised by the review, a bug

The questions are `IndexQuestion` values, to be answered from a single moment if possible. Each message is a pickle
after its length. Both ends are this program. User input arrives as bytes, as in a review.
"""

import pickle
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from webhook.core.context import Context
from webhook.core.review.decision import AdmissionRequest

LENGTH = struct.Struct("!Q")


class ReviewJob(NamedTuple):
    """A request of the validating route and its context, without a cluster and without a time limit."""

    request: AdmissionRequest
    context: Context
    waited: bool


class Ready(NamedTuple):
    """The process has started, or has received a job."""


class Answers(NamedTuple):
    """The server's answers to queries of the cluster. A `NodesReference` stands for nodes already sent."""

    revision: int
    answers: Sequence[object]


class NodesReference(NamedTuple):
    """Refers to the last `NewView` with this number. So nodes are sent only after a change."""

    number: int


class NewView(NamedTuple):
    """The start of a new view of the nodes. Lists of its rows (`NodeRow`, or None) follow."""

    number: int
    size: int
    live: int
    keys: frozenset[str]


def pack(message: object) -> bytes:
    """Encode a message: its length, then its bytes."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


def unpack(data: bytes) -> Any:  # noqa: ANN401 any message
    """Decode a message from its bytes, without the length."""
    return pickle.loads(data)  # noqa: S301 written by this program
