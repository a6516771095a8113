"""Texts for people."""

import pytest

from webhook.core.spelling import with_article

A = "UserGroup UDPRoute Deployment MachineSet Unikernel UniqueThing EurekaServer OneAgent zone node UtilityPod x"
AN = "InferenceService HTTPRoute APIService Ingress MCPServer EtcdCluster Uninstaller Upgrade HourlyJob az X LLMPool"


@pytest.mark.parametrize(("article", "nouns"), [("a", A), ("an", AN)])
def test_the_article_goes_by_the_sound(article, nouns):
    assert [with_article(each) for each in nouns.split()] == [f"{article} {each}" for each in nouns.split()]
