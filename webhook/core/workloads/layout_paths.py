"""Values at the paths of a `Layout`.

In a path, ``[*]`` is every entry of a list and ``*`` every value of a map.
"""

from collections.abc import Iterator


def walk(value: object, path: str) -> Iterator[tuple[tuple[str, ...], object, object]]:
    """Yield every field matching a path with wildcards.

    Each result is the field's path, the field's value, and the list item or map value matched by the last wildcard.
    """
    frontier: list[tuple[tuple[str, ...], object, object]] = [((), value, value)]
    for name, many in _steps(path):
        frontier = [
            ((*at, step), child, child if many else entry)
            for at, here, entry in frontier
            for step, child in _children(here, name, many=many)
        ]
    return iter(frontier)


def path_matches(path: str, steps: tuple[str, ...]) -> bool:
    """Whether a path with wildcards matches the field at ``steps``.

    The steps are field names and list indexes, such as ``[0]``.
    """
    names = [*_steps(path)]
    return len(names) == len(steps) and all(
        step == name or (many and step.startswith("[") == (name == "[]"))
        for (name, many), step in zip(names, steps, strict=True)
    )


def _steps(path: str) -> Iterator[tuple[str, bool]]:
    for segment in path.split(".") if path else ():
        if segment == "*":
            yield "", True
        elif segment.endswith("[*]"):
            yield segment.removesuffix("[*]"), False
            yield "[]", True
        else:
            yield segment, False


def _children(here: object, name: str, *, many: bool) -> Iterator[tuple[str, object]]:
    if many and name == "[]":
        if isinstance(here, list):
            yield from ((f"[{index}]", child) for index, child in enumerate(here))
    elif isinstance(here, dict):
        if many:
            yield from ((key if key.isalnum() else f"[{key}]", child) for key, child in here.items())
        elif name in here:
            yield name, here[name]


def value_at_layout_path(value: object, path: str | None) -> object:
    """Return the value at a path of field names without wildcards. None if absent.

    For list items and keys with dots, use `json_edits.value_at`.
    """
    if path is None:
        return None
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
