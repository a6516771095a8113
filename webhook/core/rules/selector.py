"""Rules about labelSelector: whom a constraint counts."""

from collections.abc import Iterator

from webhook.core.rules.finding import Finding, Subject


def selector_null(subject: Subject) -> Iterator[Finding]:
    """A null selector matches no pod: the constraint only asks that the key exists."""
    if subject.api_server_warns:
        return
    for placed in subject.placed:
        if placed.constraint.selector is None:
            yield Finding(
                rule="selector-null",
                path=f"{placed.path}.labelSelector",
                summary=f"{placed.name} has no labelSelector: it counts no pod and spreads nothing",
                remedy="add labelSelector",
                detail="a null labelSelector matches no pod: every node that has the key is as good as any other",
                key=placed.key,
            )
