import pytest
from build import autoscaler, index, owner, pod

from webhook.core.index.owners import Awaited, find_owner, most_replicas

SET = "ReplicaSet/web-7d4"
DESIRED = {"deployment.kubernetes.io/desired-replicas": "5"}


@pytest.mark.parametrize(
    ("cluster", "replicas"),
    [
        pytest.param([owner(SET, replicas=2)], 2, id="a ReplicaSet on its own"),
        pytest.param([owner(SET)], None, id="nobody wrote them"),
        pytest.param(
            [owner(SET, replicas=1, above="Deployment/web"), owner("Deployment/web", replicas=4)],
            4,
            id="in a rollout the Deployment counts",
        ),
        pytest.param(
            [owner(SET, replicas=1, above="Deployment/web", annotations=DESIRED)],
            5,
            id="the Deployment is not known yet, its annotation is",
        ),
        pytest.param(
            [
                owner(SET, replicas=1, above="Deployment/web", above_uid="new", annotations=DESIRED),
                owner("Deployment/web", replicas=1, uid="old"),
            ],
            5,
            id="only an earlier Deployment of the name is known",
        ),
        pytest.param(
            [owner(SET, replicas=1, above="Deployment/web", annotations={next(iter(DESIRED)): "5" * 5000})],
            None,
            id="an annotation that is no number of pods",
        ),
        pytest.param([owner(SET, replicas=9, above="Rollout/web")], None, id="nothing is known of what is above"),
        pytest.param(
            [
                owner(SET, replicas=1, above="Deployment/web"),
                owner("Deployment/web", replicas=1),
                autoscaler("Deployment/web", 6),
            ],
            6,
            id="an autoscaler's maximum",
        ),
        pytest.param(
            [owner(SET, replicas=1, above="Deployment/web"), autoscaler("Deployment/web", 6)],
            6,
            id="an autoscaler of a Deployment that is not known yet",
        ),
        pytest.param(
            [owner(SET, replicas=3), autoscaler("Deployment/web", 6)], 3, id="an autoscaler of something else"
        ),
    ],
)
def test_most_replicas(cluster, replicas):
    made = index(*cluster)
    assert most_replicas(made.owners.get("apps/v1", "ReplicaSet", "shop", "web-7d4"), made) == replicas


def test_replicas_of_a_set_below_an_operator():
    made = index(owner("StatefulSet/db", replicas=3, above="Database/db"))
    assert most_replicas(made.owners.get("apps/v1", "StatefulSet", "shop", "db"), made) == 3


@pytest.mark.parametrize(
    ("known", "waited", "found"),
    [
        pytest.param(owner(SET, uid="u1"), False, "u1", id="known"),
        pytest.param(owner(SET, uid="u0"), False, None, id="an earlier one of that name: wait"),
        pytest.param(owner(SET, uid="u0"), True, "u0", id="an earlier one, after waiting: as the scheduler does"),
        pytest.param(owner("ReplicaSet/web-555"), False, None, id="another: wait"),
        pytest.param(owner("ReplicaSet/web-555"), True, None, id="another: still unknown"),
    ],
)
def test_finding_the_owner(known, waited, found):
    result = find_owner(pod(owner=SET, uid="u1"), "shop", index(known), waited=waited)
    if found is None:
        assert result == Awaited(api_version="apps/v1", kind="ReplicaSet", namespace="shop", name="web-7d4")
    else:
        assert result.meta.uid == found


@pytest.mark.parametrize(
    "controller",
    [
        pytest.param(None, id="a pod that stands alone"),
        pytest.param("Job/once", id="Jobs are not watched"),
        pytest.param("Database/db", id="a kind that nobody watches"),
    ],
)
def test_nothing_to_wait_for(controller):
    assert find_owner(pod(owner=controller), "shop", index()) is None
