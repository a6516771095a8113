"""Texts for people."""

import pytest

from webhook.core.spelling import with_article
from webhook.core.text import agree

A = "UserGroup UDPRoute Deployment MachineSet Unikernel UniqueThing EurekaServer OneAgent zone node UtilityPod x"
AN = "InferenceService HTTPRoute APIService Ingress MCPServer EtcdCluster Uninstaller Upgrade HourlyJob az X LLMPool"


@pytest.mark.parametrize(("article", "nouns"), [("a", A), ("an", AN)])
def test_the_article_goes_by_the_sound(article, nouns):
    assert [with_article(each) for each in nouns.split()] == [f"{article} {each}" for each in nouns.split()]


@pytest.mark.parametrize(
    ("verb", "singular"),
    [("stay", "stays"), ("match", "matches"), ("are", "is"), ("have", "has"), ("do", "does")],
    ids=["regular", "with a syllable more", "are", "have", "do"],
)
def test_a_verb_agrees_with_its_count(verb, singular):
    assert [agree(count, verb) for count in (0, 1, 2)] == [verb, singular, verb]
