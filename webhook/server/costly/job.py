"""What the server and a process that judges costly objects say to each other, over one socket.

    server                              process
                               <-       Ready          once
    NewView, NodeRows …        ->                      whenever the nodes have changed
    Job                        ->
                               <-       Ready          begun
                               <-       Questions      as often as a rule asks the cluster
    Answers                    ->
                               <-       Decision, or ReviewFailure

Each is a pickle behind its length. Both ends are this program; what users write comes as bytes, as in a review.
"""

import pickle
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from webhook.core.context import Context
from webhook.core.index.facts import IndexQuestion
from webhook.core.index.nodes import NodeRow
from webhook.core.review.decision import AdmissionRequest, Decision

LENGTH = struct.Struct("!Q")


class Job(NamedTuple):
    """A request of the validating route, and by what it is judged. The context has no cluster and no time limit."""

    request: AdmissionRequest
    context: Context
    waited: bool


class Ready(NamedTuple):
    """The process has come so far."""


class Questions(NamedTuple):
    """Questions to be answered, of one moment if they can be."""

    questions: Sequence[IndexQuestion]


class Answers(NamedTuple):
    """The answers; where a question was for the nodes, the answer is the `Nodes` that they are."""

    revision: int
    answers: Sequence[object]


class Nodes(NamedTuple):
    """Stands for the view with this number, which the process has."""

    number: int


class NewView(NamedTuple):
    """The nodes have changed: their rows follow."""

    number: int
    size: int
    live: int
    keys: frozenset[str]


class NodeRows(NamedTuple):
    """The next rows of the new view."""

    rows: Sequence[NodeRow | None]


class ReviewFailure(NamedTuple):
    """The exception that a review raised, which is a bug."""

    error: Exception


def decision_of(decided: Decision | ReviewFailure) -> Decision:
    """Errors: whatever the review raised."""
    if isinstance(decided, ReviewFailure):
        raise decided.error
    return decided


def packed(message: object) -> bytes:
    """The message as bytes, behind their number."""
    made = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(made)) + made


def unpacked(made: bytes) -> Any:  # noqa: ANN401 whatever was packed
    """The message of these bytes, without their number."""
    return pickle.loads(made)  # noqa: S301 our own process made it
