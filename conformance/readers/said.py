"""What the rule `autoscaler-reads-it-differently` says of a question's Deployment."""

from conformance.claims.verdicts import Inspection
from conformance.claims.worlds import NOW
from webhook.core.api.version import RECORDED
from webhook.core.policy.policy import Policy
from webhook.core.review.review import examine
from webhook.core.rules.cluster.autoscalers import AUTOSCALER
from webhook.core.rules.frame.subject import Circumstances


def of_karpenter(asked):
    """Of the constraints as they stand in this cluster, with Karpenter in it."""
    nodes = [{**each, "metadata": {**each["metadata"], "labels": each["metadata"]["labels"] | {"karpenter.sh/nodepool": "default"}}}
             for each in asked["nodes"]]  # fmt: skip
    world = {"id": asked["id"], "objects": [*nodes, *asked["pods"]], "workload": asked["deployment"]}
    of = Circumstances(policy=Policy(), index=Inspection(world, None).index, version=RECORDED, today=NOW[:10], now=NOW)
    return [each.finding.summary for each in examine(asked["deployment"], of).findings if each.finding.rule == AUTOSCALER.id]
