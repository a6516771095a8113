"""Measure size and start of the image built by `make image`: python -m bench.image

The image runs from its own files in its own namespaces (image/run.py). The first start is not counted.
"""

import json
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGE = ROOT / "dist" / "image"
ROUNDS = 10
COMMAND = [sys.executable, "image/run.py", str(IMAGE), "--tmpfs", "/tmp", "--", "webhook"]  # noqa: S108 the container's


def started():
    """Return the milliseconds from start to readiness, with the bundled example cluster."""
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        port, health = (each.getsockname()[1] for each in (one, other))
    where = ["--example", f"--bind=127.0.0.1:{port}", f"--health-bind=127.0.0.1:{health}"]
    began = time.perf_counter()
    with subprocess.Popen([*COMMAND, *where], cwd=ROOT, stdout=subprocess.DEVNULL) as process:  # noqa: S603 ours
        try:
            while not ready(health):
                time.sleep(0.002)
            return (time.perf_counter() - began) * 1000
        finally:
            process.terminate()
            process.wait()


def ready(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1) as answer:
            return answer.status == 200
    except OSError:
        return False


def main():
    [entry] = json.loads((IMAGE / "layout/index.json").read_text())["manifests"]
    blobs = IMAGE / "layout/blobs/sha256"
    manifest = json.loads((blobs / entry["digest"].partition(":")[2]).read_text())
    files = [path for path in (IMAGE / "root").rglob("*") if path.is_file() and not path.is_symlink()]
    names = ("Debian's packages", "Python's packages", "evenspread")
    for name, layer in zip(names, manifest["layers"], strict=True):
        print(f"{name:20} {layer['size'] / 2**20:6.1f} MiB packed")
    print(f"{'together':20} {sum(layer['size'] for layer in manifest['layers']) / 2**20:6.1f} MiB packed, ", end="")
    print(f"{sum(path.stat().st_size for path in files) / 2**20:.0f} MiB in {len(files)} files")
    started()
    taken = sorted(started() for _ in range(ROUNDS))
    print(f"ready after {taken[0]:.0f} ms at best, {statistics.median(taken):.0f} at the median of {ROUNDS} starts")


if __name__ == "__main__":
    main()
