"""What the rule `autoscaler-reads-it-differently` says of a question's Deployment."""

from conformance.claims.verdicts import Inspection
from conformance.claims.worlds import NOW
from webhook.core.api.version import RECORDED
from webhook.core.policy.policy import Policy
from webhook.core.review.examination import examine
from webhook.core.rules.cluster.autoscalers import AUTOSCALER
from webhook.core.context import Context


DESCHEDULER = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "descheduler", "namespace": "kube-system"}}


def of_karpenter(asked):
    """Of the constraints as they stand in this cluster, with Karpenter in it."""
    nodes = [{**each, "metadata": {**each["metadata"], "labels": each["metadata"]["labels"] | {"karpenter.sh/nodepool": "default"}}}
             for each in asked["nodes"]]  # fmt: skip
    return _said(asked, nodes)


def of_descheduler(asked):
    """The same with the descheduler in it."""
    return _said(asked, [*asked["nodes"], DESCHEDULER])


def _said(asked, there):
    world = {"id": asked["id"], "objects": [*there, *asked["pods"]], "workload": asked["deployment"]}
    of = Context(policy=Policy(), index=Inspection(world, None).index, version=RECORDED, now=NOW)
    return [each.finding.summary for each in examine(asked["deployment"], of).findings if each.finding.rule == AUTOSCALER.id]
