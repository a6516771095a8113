"""The messages between the server and a process for costly objects, over a socket.

    server                              process
                               <-       Ready          once
    NewView, rows of it …      ->                      after each change of the nodes
    ReviewJob                  ->
                               <-       Ready          started
                               <-       questions      for each query of a rule
    Answers                    ->
                               <-       Decision, or the Exception raised by the review, a bug

The questions are `IndexQuestion` values. If possible, all questions are answered from the same version of the index.
Each message is a pickle after its length. Server and process run the same program. User input arrives as bytes, as in a
review.
"""

import pickle
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from webhook.core.context import Context
from webhook.core.review.decision import AdmissionRequest

LENGTH = struct.Struct("!Q")


class ReviewJob(NamedTuple):
    """An AdmissionReview for a review process, and its context. The context has neither the index nor a deadline."""

    request: AdmissionRequest
    context: Context
    waited: bool


class Ready(NamedTuple):
    """Message of the review process: it has started, or it has received a job."""


class Answers(NamedTuple):
    """The server's answers to queries of the cluster. A `NodesReference` stands for nodes already sent."""

    revision: int
    answers: Sequence[object]


class NodesReference(NamedTuple):
    """Replaces the cluster's nodes in a message, because the process has them already.

    ``number`` is the number of the `NewView` with these nodes.
    """

    number: int


class NewView(NamedTuple):
    """The first message with a new list of the cluster's nodes. Lists of node rows (`NodeRow` or None) follow."""

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
