"""What holds for every test."""

import os
import time
from collections import Counter
from pathlib import Path

import core_coverage
import pytest
from hypothesis import settings

# A busy machine is no fault of the code under test: examples are bounded in number, not in time. A gate takes the same
# ones each time, so that it turns red for what changed, and as many as Hypothesis does by default; everywhere else
# they are new in every run, and fewer, since somebody waits. Where a test names a number itself, that holds.
_IS_GATE = "CI" in os.environ
settings.register_profile("any-machine", deadline=None, derandomize=_IS_GATE, max_examples=100 if _IS_GATE else 30)
settings.load_profile("any-machine")

# `make test-all` sets it: only the whole suite covers the core.
_COVERS_CORE = "COVER_CORE" in os.environ
if _COVERS_CORE:
    core_coverage.measure()

# Where the tests themselves run in a pod, no server of theirs is to watch the cluster around it.
os.environ.pop("KUBERNETES_SERVICE_HOST", None)


def _processor_time() -> float:
    """Of this process and of those it waited for, in seconds."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _slowness() -> float:
    """How much slower than usual a processor is now: on a busy machine, two programs share a core's units."""
    before = time.process_time()
    sum(number % 7 for number in range(1_000_000))
    return max(1.0, (time.process_time() - before) / 0.05)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]):
    """Mark the cases of each `sampled` table slow, but for every tenth."""
    count = Counter[str]()
    for item in items:
        table = item.nodeid.partition("[")[0]
        if item.get_closest_marker("sampled") and count[table] % 10:
            item.add_marker(pytest.mark.slow)
        count[table] += 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function):
    """Fail an unmarked test above one second of processor time, so that `make test` stays short.

    A property that draws new examples in each run has three seconds, because some draws are unlucky.
    """
    before = _processor_time()
    yield
    spent = _processor_time() - before
    allowed = 3 if getattr(item.obj, "is_hypothesis_test", False) else 1
    is_fast_run = item.config.option.markexpr == "not slow" and not _IS_GATE
    if is_fast_run and spent > allowed and not item.get_closest_marker("slow") and spent > allowed * _slowness():
        pytest.fail(f"took {spent:.1f} s of processor time: mark it slow, or make it faster")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take over what a process of xdist has covered."""
    core_coverage.merge(getattr(node, "workeroutput", {}).get("ran", {}))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session):
    """Fail if the whole suite leaves out more lines or branches of the core than known."""
    if not _COVERS_CORE:
        return
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["ran"] = {path: bytes(probes) for path, probes in core_coverage.ran.items()}
        return
    gaps = [*core_coverage.missing(Path(__file__).parents[1] / "webhook" / "core")]
    session.config.stash[_GAPS] = gaps
    if len(gaps) > core_coverage.MOST_GAPS and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


_GAPS = pytest.StashKey[list[str]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config):
    gaps = config.stash.get(_GAPS, [])
    for gap in gaps:
        terminalreporter.write_line(f"not covered: {gap}")
    if gaps:
        terminalreporter.write_line(f"{len(gaps)} blocks of the core have no test; known: {core_coverage.MOST_GAPS}")
