"""How EXPLAIN lays out what it has found: as lines, as JSON or as YAML, each as PostgreSQL prints its own plans."""

import json
import re
from collections.abc import Iterable, Iterator

Fact = tuple[str, str]
Facts = list[tuple[str, str | list[str]]]

_WIDEST = 120  # characters of a line
_UNBROKEN = re.compile(r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\s'"])+|['"]""")  # a space in quotes is part of a value


def as_text(cost: str, charge: Fact, blocks: Iterable[Facts]) -> list[str]:
    """The lines of the plan; what is too long goes on in the next one, further in."""
    lines = [cost, *_wrapped("  ", *charge)]
    for number, block in enumerate(blocks, start=1):
        lines.append(f"  ->  Block {number}")
        for name, value in block:
            lines += _wrapped("        ", name, value if isinstance(value, str) else ", ".join(value))
    return lines


def as_json(plan: Facts, blocks: Iterable[Facts]) -> str:
    """A tree of nodes, as viewers of plans read it."""
    return json.dumps([{"Plan": _tree(plan, blocks)}], indent=2, ensure_ascii=False)


def as_yaml(plan: Facts, blocks: Iterable[Facts]) -> str:
    """The same tree as lines; every value is quoted as JSON has it, which YAML reads too."""
    lines = ["- Plan: ", *(f"    {line}" for line in _yaml([("Node Type", "Private Answer"), *plan]))]
    lines.append("    Plans: ")
    for block in blocks:
        first, *rest = _yaml([("Node Type", "Block"), *block])
        lines += [f"      - {first}", *(f"        {line}" for line in rest)]
    return "\n".join(lines)


def _tree(plan: Facts, blocks: Iterable[Facts]) -> dict[str, object]:
    below = [{"Node Type": "Block", **dict(block)} for block in blocks]
    return {"Node Type": "Private Answer", **dict(plan), "Plans": below}


def _yaml(facts: Facts) -> Iterator[str]:
    for name, value in facts:
        key = name if re.fullmatch(r"[\w ]+", name) else json.dumps(name, ensure_ascii=False)
        if isinstance(value, str):
            yield f"{key}: {json.dumps(value, ensure_ascii=False)}"
        else:
            yield f"{key}: "
            yield from (f"  - {json.dumps(each, ensure_ascii=False)}" for each in value)


def _wrapped(indent: str, name: str, value: str) -> Iterator[str]:
    """Broken where a space is no part of a value, so that the lines of SQL may be run as they are."""
    first, *words = _UNBROKEN.findall(f"{name}: {value}")
    line = f"{indent}{first}"
    for word in words:
        if len(line) + 1 + len(word) > _WIDEST:
            yield line
            line = f"{indent}   "
        line = f"{line} {word}"
    yield line
