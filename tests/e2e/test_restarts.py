"""A single webhook that starts again beside a live cluster: no pod that it is asked about goes without its defaults."""

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
        lives = [webhook]
        counts = []
        try:
            with dry_runs(plane, namespace, 60):
                for _ in range(STARTS):
                    lives[-1].kill()
                    lives.append(lives[-1].again())
                    asked = lives[-1].metric("evenspread_admission_requests_total", 'route="mutate"')
                    skipped = lives[-1].metric("evenspread_injections_skipped_total")
                    waited = lives[-1].metric("evenspread_arrival_wait_seconds_count", 'outcome="listed"')
                    counts.append((asked, skipped, waited))
        finally:
            lives[-1].kill()

    assert [skipped for _, skipped, _ in counts] == [0] * STARTS, counts
    assert sum(asked for asked, _, _ in counts) > 0, counts
    print("asked, skipped, waited:", counts)
