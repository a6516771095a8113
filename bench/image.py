"""Size and start of the image that `make image` has built: python -m bench.image

From the image: out of its own files, in namespaces of its own (image/run.py). From the clone: the same program in the
virtual environment, with the bytecode that it has there. Taken in turn, after one of each that is not counted.
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
IN_IMAGE = [sys.executable, "image/run.py", str(IMAGE), "--tmpfs", "/tmp", "--", "webhook"]  # noqa: S108 the container's
IN_CLONE = [sys.executable, "-m", "evenspread", "webhook"]


def started(command):
    """Milliseconds until it is ready, with the bundled example cluster."""
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        port, health = (each.getsockname()[1] for each in (one, other))
    where = ["--example", f"--bind=127.0.0.1:{port}", f"--health-bind=127.0.0.1:{health}"]
    began = time.perf_counter()
    with subprocess.Popen([*command, *where], cwd=ROOT, stdout=subprocess.DEVNULL) as process:  # noqa: S603 ours
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
    times = {"from the image": [], "from the clone": []}
    for command in (IN_IMAGE, IN_CLONE):
        started(command)
    for _ in range(ROUNDS):
        for taken, command in zip(times.values(), (IN_IMAGE, IN_CLONE), strict=True):
            taken.append(started(command))
    for name, taken in times.items():
        print(f"ready {name}: median {statistics.median(taken):.0f} ms, {min(taken):.0f} to {max(taken):.0f}")


if __name__ == "__main__":
    main()
