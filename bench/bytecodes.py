"""Count the bytecodes and Python functions of a review. The numbers do not depend on the machine's load.

    python -m bench.bytecodes

The cases are those of `bench.static_review`, from the bytes of a body to the bytes of the response, as answered in the
event loop: without a cluster, with 5,000 nodes, and with 5,000 nodes and a scan. C code is not counted: decoding,
regular expressions, and operations on sets of nodes.
"""

import sys

from bench.figure import at_most
from bench.static_review import CASES, ENGINE, beside_nodes, scanned
from webhook import admission
from webhook.metrics import Metrics
from webhook.server.asgi import AdmissionApp
from webhook.server.state import ServerState

TARGET, HEADERS = b"/validate?timeout=2s", [(b"content-type", b"application/json")]
WARM = 3
ALONE, SCANNED = 5_500, 14_500  # the most bytecodes for two right constraints, with CPython 3.11
SECONDS = 60.0  # counting takes longer than a review in the event loop may


def counted(function, *arguments):
    """Return the bytecodes and Python functions of a call, after some calls to fill caches."""
    for _ in range(WARM):
        function(*arguments)
    bytecodes = functions = 0

    def trace(frame, event, _):
        nonlocal bytecodes, functions
        if event == "call":
            functions += 1
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        bytecodes += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return bytecodes, functions


def review_of(engine, body):
    """Return a function without arguments to answer and account for a review in the event loop."""
    app = AdmissionApp(ServerState(engine, Metrics()))

    def answer():
        _, account = app.direct(TARGET, HEADERS, body)
        account()

    answer()
    return answer


def moving(index, there, here):
    """Return a function without arguments to apply two decoded events: a pod moves to another node, and back."""

    def run():
        index.apply("MODIFIED", there)
        index.apply("MODIFIED", here)

    return run


def figures():
    admission._IN_LINE_SECONDS = SECONDS  # noqa: SLF001 its own process
    body, cluster = CASES["two right constraints"], beside_nodes(0)
    for name, engine, bound in (("alone", ENGINE, ALONE), ("beside 5,000 nodes, scanned", scanned(cluster), SCANNED)):
        yield at_most(f"review, {name}", counted(review_of(engine, body))[0], bound, "bytecodes")


def main():
    admission._IN_LINE_SECONDS = SECONDS  # noqa: SLF001 its own process
    print(f"{'bytecodes (functions)':30} {'alone':>16} {'beside 5,000 nodes':>20} {'and scanned':>20}")
    cluster = beside_nodes(0)
    engines = (ENGINE, cluster, scanned(cluster))
    for case, body in CASES.items():
        alone, beside, left = ("{:,} ({:,})".format(*counted(review_of(engine, body))) for engine in engines)
        print(f"{case:30} {alone:>16} {beside:>20} {left:>20}")


if __name__ == "__main__":
    main()
