"""Why a rule could not be evaluated: the kind of reason for the program, the sentence for users."""

from enum import Enum

from msgspec import Struct


class Missing(Enum):
    """What was missing to evaluate a rule. The value is the sentence for users, unless a `Reason` has its own."""

    NO_CLUSTER = "no cluster"
    STALE = "what is known of the cluster is older than maxStaleness"
    NO_TIME = "no time left"
    NEEDS_SEARCH = "unknown: all orders would have to be searched, and others wait"
    # An object that is costly beside the cluster was not judged: for its own cost, for the load of its own namespace,
    # or for the load of others. In the last case rules use the cluster without a search.
    TOO_COSTLY = "too costly to look at beside this cluster"
    BUSY = "busy with other large objects"
    CROWDED = "busy with large objects of others"
    # The object exceeds a limit for rules that need the cluster, or a limit for all rules.
    TOO_LARGE = "too large to look at beside the cluster"
    IMMENSE = "too large to look at"
    RULE_FAILED = "the rule failed, which is a fault of evenspread"
    UNKNOWN = "unknown"  # a fact of this object or cluster

    @property
    def reason(self) -> "Reason":
        """The reason in the words of this kind."""
        return Reason(self.value, self)


class Reason(Struct, frozen=True):
    """Why there is no answer: the sentence for users, and the kind, on which decisions depend."""

    text: str
    kind: Missing = Missing.UNKNOWN

    def within(self, question: str) -> "Reason":
        """The reason after the question that has no answer."""
        return Reason(f"{question} is {self.text}", self.kind)


TOO_LONG = Reason("a review of more than 7 MiB", Missing.IMMENSE)
OVERLOADED = frozenset({Missing.TOO_COSTLY, Missing.BUSY})
"""No process had time for a costly object."""
OF_SIZE = OVERLOADED | {Missing.TOO_LARGE, Missing.IMMENSE}
"""The object's size is why rules do not look at it."""
