"""What a subject computes for those who ask."""

from manifest import DENY, RECENT, examined, workload

from webhook.core.context import Context
from webhook.core.rules.frame.subject import Subject, placed_constraints


def test_what_several_ask_for_is_computed_once():
    known = examined(workload("Deployment", "app=web", "zone hard 1 app=web")).workload
    subject = Subject(workload=known, placed=placed_constraints(known), context=Context(policy=DENY, version=RECENT))
    asked = []

    def names(of):
        asked.append(of)
        return [each.name for each in of.placed]

    assert subject.computed(names) is None
    assert subject.once(names) == subject.once(names) == subject.computed(names) == ["zone[0]"]
    assert asked == [subject]
