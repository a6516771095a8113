"""A single webhook that starts again beside a live cluster: no pod that it is asked about goes without its defaults."""

from collections import Counter

from e2e.injected import injecting
from e2e.load import dry_runs
from e2e.objects import path
from e2e.registration import registered

STARTS = 3


def test_no_answer_comes_before_the_cluster_is_known(plane, namespace, tmp_path):
    """In 4 of 5 starts the first pods got none, since the port answered before the Services were listed."""
    selecting = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    plane.api.request("POST", path("Service", namespace), selecting)
    with injecting(plane, tmp_path) as webhook, registered(plane, namespace, webhook.server):
        life = webhook
        try:
            with dry_runs(plane, namespace, 60) as told:
                for _ in range(STARTS):
                    life.kill()
                    life = life.again()
        finally:
            life.kill()

    counts = Counter(told)
    assert counts[201, False] == 0, counts
    assert counts[201, True] > 0, counts
