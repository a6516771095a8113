"""What if: a form -> words of the command line -> the answer of a bounded process."""

import re
import resource
import subprocess
import sys
import threading

import pytest
from console.reading import read
from console.scans import LEDGER, shown, workload
from console.test_api import fits
from msgspec.structs import replace

from webhook.cli.commands.webhook.example import CLUSTER, POLICY
from webhook.cli.console_sources import WHAT_IF_WORKER
from webhook.console import what_if
from webhook.console.what_if import NoAnswer, Simulator, WhatIfChange, WorkerLimits, read_change

OPTIONS = ("--snapshot", str(CLUSTER), "--config", str(POLICY))
MIB = 1024 * 1024
ADDRESS = "/what-if?kind=Deployment&namespace=payments&name=ledger"


# On a busy machine a second of work takes as long as it takes.
PATIENT = WorkerLimits(seconds=300.0)
CHANGE = WhatIfChange(kind="Deployment", namespace="payments", name="ledger")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({}, "", id="nothing"),
        pytest.param({"replicas": "9", "rollout": "1"}, "--replicas=9 --rollout", id="of the workload"),
        pytest.param(
            {"lose": "b", "drain": "n1", "delete": "n2"},
            "--drain=n1 --delete-node=n2 --lose=zone=b",
            id="of the cluster",
        ),
        pytest.param({"add": "c"}, "--add-nodes=zone=c:1", id="a node more"),
        pytest.param({"add": "c", "nodes": "3"}, "--add-nodes=zone=c:3", id="nodes more"),
        pytest.param({"replicas": "1001", "nodes": "7"}, "", id="numbers out of bounds"),
        pytest.param({"drain": "--as=root"}, "--drain=--as=root", id="an option in a field stays its value"),
    ],
)
def test_a_form_becomes_words(given, words):
    change = read_change(workload("web"), given)
    assert change.arguments == (*words.split(), "--namespace=shop", "--", "deployment/web")


def test_a_field_is_bounded():
    assert len(read_change(workload("web"), {"drain": "x" * 10_000}).drain) == 253


@pytest.mark.slow
def test_it_is_what_the_command_line_says(browse):
    client = browse(shown(LEDGER), Simulator(WHAT_IF_WORKER, OPTIONS, PATIENT))
    page = read(client.get(f"{ADDRESS}&replicas=5"))
    assert page.texts["answer"].startswith("Deployment payments/ledger fits: all 5 pods have a node")
    assert f"evenspread simulate --snapshot {CLUSTER}" in page.texts["paste"]
    document = fits(client.get(f"/api/v1{ADDRESS}&replicas=5").json, "whatIf")
    assert (document["verdict"], document["wanted"]) == ("fits", 5)


@pytest.mark.slow
def test_what_is_in_the_way_and_what_would_help_is_shown(browse):
    page = read(browse(shown(LEDGER), Simulator(WHAT_IF_WORKER, OPTIONS, PATIENT)).get(f"{ADDRESS}&lose=eu-central-1b"))
    told = page.texts["answer"]
    assert (
        "Zone eu-central-1b cannot be reached Deployment payments/ledger does not fit: 3 of 7 pods get a node" in told
    )
    assert "Zone eu-central-1b is gone Deployment payments/ledger does not fit" in told
    assert "worker-c2 cordoned" in told
    assert "What would help set maxSkew: 6" in told
    assert "Not evaluated: SchedulerConfiguration" in told


@pytest.mark.slow
def test_a_question_that_cannot_be_asked_says_why(browse):
    client = browse(shown(LEDGER), Simulator(WHAT_IF_WORKER, OPTIONS, PATIENT))
    assert "the cluster has no node nowhere" in read(client.get(f"{ADDRESS}&drain=nowhere")).texts["answer"]
    answer = client.get(f"/api/v1{ADDRESS}&drain=nowhere")
    assert answer.status_code == 503
    assert "the cluster has no node nowhere" in fits(answer.json, "error")["error"]


def test_without_a_simulator_there_is_no_form_and_no_answer(browse):
    client = browse(shown(LEDGER))
    assert "Try it" not in client.get(ADDRESS.replace("what-if", "workload")).text
    assert client.get(ADDRESS).status_code == 404
    assert client.get(f"/api/v1{ADDRESS}").status_code == 404


class Silent(Simulator):
    """Answers without asking anybody."""

    def answer(self, change):
        raise NoAnswer(change.name)


@pytest.mark.parametrize(
    ("site", "status"), [(None, 200), ("none", 200), ("same-origin", 200), ("same-site", 403), ("cross-site", 403)]
)
def test_pages_elsewhere_cannot_make_it_work(browse, site, status):
    headers = {} if site is None else {"Sec-Fetch-Site": site}
    assert browse(shown(LEDGER), Silent("", ())).get(ADDRESS, headers=headers).status_code == status


def test_a_live_page_does_not_ask_again_by_itself(browse):
    client = browse(replace(shown(LEDGER), live=True), Silent("", ()))
    assert "data-live" not in client.get(ADDRESS).text
    assert "data-live" in client.get(ADDRESS.replace("what-if", "workload")).text


@pytest.mark.slow
def test_a_question_is_ended_when_its_time_is_over():
    with pytest.raises(NoAnswer) as refused:
        Simulator(WHAT_IF_WORKER, OPTIONS, WorkerLimits(seconds=0.01)).answer(CHANGE)
    assert str(refused.value) == "The simulation takes longer than 0.01 s. The command line has no limit."


@pytest.mark.parametrize(
    ("most", "current", "left"),
    [
        pytest.param("536870912", "268435456", 224 * MIB, id="what the container has left, but for some"),
        pytest.param("8589934592", "268435456", 512 * MIB, id="of a large one no more than else"),
        pytest.param("max", "268435456", 512 * MIB, id="without a limit"),
        pytest.param(None, None, 512 * MIB, id="where the kernel does not say"),
        pytest.param("536870912", "402653184", 96 * MIB, id="just enough"),
    ],
)
def test_it_takes_no_more_memory_than_its_container_has(tmp_path, most, current, left):
    if most is not None:
        (tmp_path / "memory.max").write_text(f"{most}\n")
        (tmp_path / "memory.current").write_text(f"{current}\n")
    assert WorkerLimits(cgroup=tmp_path).bytes_left() == left


def test_where_too_little_memory_is_left_nothing_is_begun(tmp_path):
    (tmp_path / "memory.max").write_text("536870912\n")
    (tmp_path / "memory.current").write_text("402653185\n")
    with pytest.raises(NoAnswer) as refused:
        Simulator(WHAT_IF_WORKER, OPTIONS, WorkerLimits(cgroup=tmp_path)).answer(CHANGE)
    assert str(refused.value) == (
        "The memory limit of this container leaves too little for the simulation: 95 MiB. "
        "Raise the limit, or run the command in a terminal."
    )


def test_a_question_is_bounded_though_nobody_waits_for_it_any_more():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        what_if._restrain(process.pid, 100 * MIB)
        limits = [resource.prlimit(process.pid, each) for each in (resource.RLIMIT_DATA, resource.RLIMIT_CPU)]
        process.kill()
    assert limits == [(100 * MIB, 100 * MIB), (30, 30)]


@pytest.mark.slow
def test_a_question_that_needs_too_much_memory_is_ended():
    limits = WorkerLimits(most_bytes=8 * MIB, least_bytes=0, seconds=300.0)
    with pytest.raises(NoAnswer) as refused:
        Simulator(WHAT_IF_WORKER, OPTIONS, limits).answer(CHANGE)
    assert str(refused.value) == "The simulation needs more memory than this container has left."


def test_one_is_answered_at_a_time():
    began, go_on = threading.Event(), threading.Event()

    class Slow(Simulator):
        def _answer(self, change):
            began.set()
            go_on.wait(10)
            return {"name": change.name}

    simulator, answers = Slow("", (), WorkerLimits(patience_seconds=0.01)), []
    change = WhatIfChange(kind="Deployment", namespace="shop", name="web")
    first = threading.Thread(target=lambda: answers.append(simulator.answer(change)))
    first.start()
    began.wait(10)
    with pytest.raises(NoAnswer) as refused:
        simulator.answer(change)
    assert str(refused.value) == "Another what-if question is being answered. Try again in a moment."
    go_on.set()
    first.join()
    assert answers == [{"name": "web"}]
    assert simulator.answer(change) == {"name": "web"}


@pytest.mark.parametrize(
    ("code", "said", "complaint", "told"),
    [
        pytest.param(
            3,
            b"",
            b"note: one\nevenspread: snapshot x: no nodes known\n",
            "^snapshot x: no nodes known$",
            id="what it says last",
        ),
        pytest.param(
            -9,
            b"",
            b"",
            "^The simulation needs more memory than this container has left.$",
            id="nothing",
        ),
        pytest.param(0, b"[", b"", "memory", id="half an answer"),
        pytest.param(0, b"{}" + b" " * 5_000_000, b"", "memory", id="an answer without end"),
    ],
)
def test_what_cannot_be_used_is_told(code, said, complaint, told):
    with pytest.raises(NoAnswer) as raised:
        what_if._read(code, said, complaint)
    assert re.search(told, str(raised.value))
