"""Count how often a reader of the code changes folders, in each of several checkouts of this repository.

    python -m bench.walks ../before .

Each walk runs the program once on its own example, and records every function of ``webhook/`` at its first call, in
order. The first number counts the changes of folder in this list, the second number the returns to an earlier folder.
Each checkout needs its own ``.venv``.
"""

import json
import subprocess
import sys
from pathlib import Path

DEPLOYMENT = "examples/warned.yaml"
SNAPSHOT = ("--snapshot", "webhook/example/cluster.jsonl")
WALKS = {
    "check": ("check", DEPLOYMENT),
    "check beside a cluster": ("check", DEPLOYMENT, *SNAPSHOT),
    "explain": ("explain", "--pending", *SNAPSHOT),
    "simulate": ("simulate", "--all", "--lose", "zone=eu-central-1b", *SNAPSHOT),
    "audit": ("audit", *SNAPSHOT),
    "validate": ("validate", "webhook/example/warned-deployment.json"),
    "mutate": ("mutate", "webhook/example/bare-pod.json"),
}
WORKER = """
import contextlib, io, json, sys
from pathlib import Path

name, *given = json.loads(sys.argv[1])
top = Path("webhook").resolve()
seen, rooms = set(), []

def called(frame, event, _):
    code = frame.f_code
    if event != "call" or code in seen or code.co_name == "<module>" or not code.co_filename.startswith(f"{top}/"):
        return
    seen.add(code)
    room = Path(code.co_filename).parent
    if rooms[-1:] != [room]:
        rooms.append(room)

if name in ("validate", "mutate"):
    from msgspec.structs import replace
    from bench.static_review import beside_nodes
    from webhook.admission import answer
    from webhook.admission_request import decode_review
    from webhook.config.files import load_policy
    policy = load_policy("webhook/example/policy.yaml").policy
    engine, body = replace(beside_nodes(0), policy=policy), Path(given[0]).read_bytes()
    def walk():
        answer(name, decode_review(body), engine, today="2026-11-21")
else:
    from webhook.cli.main import main
    def walk():
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            with contextlib.suppress(SystemExit):
                main([name, *given])

walk()  # imports and caches
rooms.clear()
seen.clear()
sys.setprofile(called)
walk()
sys.setprofile(None)
entered = len(rooms) - 1
print(entered, entered - len({*rooms[1:]} - {rooms[0]}))
"""


def walked(tree: str, walk: tuple[str, ...]) -> str:
    """Return the two numbers of a walk in a checkout."""
    python = Path(tree).resolve() / ".venv" / "bin" / "python"
    command = [python, "-c", WORKER, json.dumps(walk)]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 ours


def main():
    trees = sys.argv[1:] or ["."]
    print(f"{'walk':24}", *(f"{tree:>16}" for tree in trees))
    for name, walk in WALKS.items():
        print(f"{name:24}", *(f"{walked(tree, walk):>16}" for tree in trees))


if __name__ == "__main__":
    main()
