"""Replace a label's value in an object, to turn a shard's manifest into another shard's."""

from collections.abc import Mapping


def replace_label_value(value: Mapping[str, object], label: str, old: str, new: str) -> dict[str, object]:
    """Replace the old value of a label by a new value, in labels and selectors.

    Args:
        value: An object as JSON or YAML values.
        label: The label's key.
        old: The value to replace. Other values stay.
        new: The new value.
    """

    def replaced(value: object, field: str) -> object:
        if isinstance(value, list):
            return [replaced(item, field) for item in value]
        if not isinstance(value, Mapping) or field == "nodeAffinity":  # Node affinity selects labels of nodes.
            return value
        if field in {"labels", "matchLabels"}:
            return {key: new if (key, text) == (label, old) else text for key, text in value.items()}
        if field == "matchExpressions" and value.get("key") == label and value.get("values") == [old]:
            return {**value, "values": [new]}
        return {key: replaced(item, key) for key, item in value.items()}

    return {key: replaced(item, key) for key, item in value.items()}
