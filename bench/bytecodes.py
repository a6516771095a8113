"""How many bytecodes and Python functions one review takes, which is the same on a busy machine and on an idle one.

    python -m bench.bytecodes

The cases are those of `bench.static_review`, each a call of the server's own short way from the bytes of a body to the
bytes of the response, without a cluster, beside 5,000 nodes, and there with a scan. What C code does is not counted:
decoding, matching of regular expressions, operations on sets of nodes.
"""

import sys

from bench.static_review import CASES, ENGINE, beside_nodes, scanned
from webhook import admission
from webhook.metrics import Metrics
from webhook.server.asgi import AdmissionApp
from webhook.server.state import ServerState

TARGET, HEADERS = b"/validate?timeout=2s", [(b"content-type", b"application/json")]
WARM = 3
admission._IN_LINE_SECONDS = 60.0  # noqa: SLF001 counting takes longer than a review in the event loop may


def counted(app, body):
    """Bytecodes and functions of one call, after a few that fill caches."""
    for _ in range(WARM):
        assert app.direct(TARGET, HEADERS, body) is not None
    bytecodes = functions = 0

    def trace(frame, event, _):
        nonlocal bytecodes, functions
        if event == "call":
            functions += 1
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        bytecodes += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        app.direct(TARGET, HEADERS, body)
    finally:
        sys.settrace(None)
    return bytecodes, functions


def main():
    print(f"{'bytecodes (functions)':30} {'alone':>16} {'beside 5,000 nodes':>20} {'and scanned':>20}")
    cluster = beside_nodes(0)
    apps = [AdmissionApp(ServerState(engine, Metrics()), None) for engine in (ENGINE, cluster, scanned(cluster))]
    for case, body in CASES.items():
        alone, beside, left = ("{:,} ({:,})".format(*counted(app, body)) for app in apps)
        print(f"{case:30} {alone:>16} {beside:>20} {left:>20}")


if __name__ == "__main__":
    main()
