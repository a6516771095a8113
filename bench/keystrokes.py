"""Measure the language server: from a keystroke to the published diagnostics, over its standard input and output.

    python -m bench.keystrokes [--keystrokes 300]

The file has 1,000 lines with 25 Deployments, and the snapshot 5,000 nodes with 20,000 pods. Each keystroke changes a
field of a constraint, a label, an image or a comment of another Deployment. Pauses are as in fast typing, and every
tenth is longer, so that the server examines the unchanged objects too.
"""

import argparse
import asyncio
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from bench.command_line import MANIFEST
from bench.figure import at_most
from webhook.cluster.resources import BUILT_IN_RESOURCES

NODES, PODS, LINES = 5000, 20_000, 1000
GOAL = 50  # milliseconds
CHANGES = (
    ("maxSkew: 1", "maxSkew: {}"),
    ("tier: front", "tier: front{}"),
    ("web:1.2.3", "web:{}"),
    ("---\n", "--- # {}\n"),
)


def snapshot():
    """Yield the lines of the cluster."""
    resources = [resource.name for resource in BUILT_IN_RESOURCES]
    yield {"kind": "Snapshot", "kubernetesVersion": "v1.37.1", "resources": resources}
    for number in range(NODES):
        name = f"node-{number}"
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
        status = {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
    for number in range(PODS):
        meta = {"name": f"pod-{number}", "namespace": "shop", "labels": {"app": f"web-{number % 40}"}}
        spec = {"nodeName": f"node-{number % NODES}", "containers": [{"name": "web"}]}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}


def manifests():
    """The documents of the file, up to LINES lines."""
    documents = ["---\n" + MANIFEST.format(number=number) for number in range(LINES)]
    lines = list(itertools.accumulate(document.count("\n") for document in documents))
    return documents[: next(number for number, total in enumerate(lines) if total >= LINES) + 1]


def typed(documents, keystrokes):
    """Yield the text after each keystroke."""
    chance, changed = random.Random(1), [*documents]  # noqa: S311 the same keystrokes each time
    for number in range(keystrokes):
        before, after = CHANGES[number % len(CHANGES)]
        at = chance.randrange(len(documents))
        changed[at] = documents[at].replace(before, after.format(number % 9 + 2), 1)
        yield "".join(changed)


async def latencies(folder, keystrokes):
    """The milliseconds of each keystroke, after the file is open, and the server's processor time in them."""
    client, published = LanguageClient("bench", "1"), asyncio.Queue()
    client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: published.put_nowait(params.version))
    options = ["-m", "evenspread", "lsp", "--no-config", "--snapshot", str(folder / "cluster.jsonl")]
    await client.start_io(sys.executable, *options)
    await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
    client.initialized(types.InitializedParams())
    documents, uri = manifests(), (folder / "web.yaml").as_uri()
    opened = types.TextDocumentItem(uri, "yaml", 0, "".join(documents))
    client.text_document_did_open(types.DidOpenTextDocumentParams(opened))
    await published.get()
    spent, processor = [], []
    for version, text in enumerate(typed(documents, keystrokes), 1):
        await asyncio.sleep(1.5 if version % 10 == 0 else 0.1)
        start, before = time.perf_counter(), processor_milliseconds(client._server.pid)  # noqa: SLF001 no other way
        document = types.VersionedTextDocumentIdentifier(version, uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        while await published.get() != version:
            pass
        spent.append((time.perf_counter() - start) * 1000)
        processor.append(processor_milliseconds(client._server.pid) - before)  # noqa: SLF001 as above
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return spent, processor


def processor_milliseconds(pid):
    """The processor time of a process and its threads. Source: kernel Documentation/scheduler/sched-stats.rst."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e6


def measured(keystrokes):
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        with (folder / "cluster.jsonl").open("w") as file:
            file.writelines(json.dumps(line) + "\n" for line in snapshot())
        return asyncio.run(latencies(folder, keystrokes))


def p99(spent):
    return statistics.quantiles(spent, n=100, method="inclusive")[98]


def figures():
    _, processor = measured(200)
    return [at_most(f"p99 of a keystroke, {LINES:,} lines, {NODES:,} nodes", p99(processor), GOAL, "ms of processor")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keystrokes", type=int, default=300)
    for name, spent in zip(("latency", "processor time"), measured(parser.parse_args().keystrokes), strict=True):
        print(f"{name}: median {statistics.median(spent):.1f} ms, p99 {p99(spent):.1f} ms, highest {max(spent):.1f} ms")
    print(f"The goal is a p99 of at most {GOAL} ms.")


if __name__ == "__main__":
    main()
