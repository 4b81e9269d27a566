"""What pages leave out of a rules file: connection strings, verifiers, and queries for them, on however many lines."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import yaml

_KEYS: Final = frozenset({"database", "public_reader", "password", "query"})
_SECRET: Final = re.compile(
    r"((?:\b|[\"'])(?:database|public_reader|password|query)[\"']?\s*:\s*)\S.*|(SCRAM-SHA-256\$)[^\s\"']+"
    r"|(password\s*=\s*)\S.*|(\w+://)\S+",
    re.IGNORECASE,
)  # in comments too, of which YAML says nothing
_NOT_SHOWN: Final = "(not shown)"


def without_secrets(line: str) -> str:
    """A line without what can be told to be secret by itself.

    Example:
        >>> without_secrets("  database: postgresql://noisegate:secret@db/shop  # the shop")
        '  database: (not shown)'
    """
    return _SECRET.sub(lambda match: f"{next(filter(None, match.groups()))}{_NOT_SHOWN}", line)


def find_secret_lines(text: str) -> Mapping[str, str] | None:
    """Each line that has a part of a secret, and what stands there instead; nothing where the text is not YAML.

    Example:
        >>> find_secret_lines("database: >-\\n  host=db\\n  password='a b'\\nunit: customers.id")
        {'database: >-': 'database: (not shown)', '  host=db': '(not shown)', "  password='a b'": '(not shown)'}
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    lines, shown = text.splitlines(), dict[str, str]()
    for node in () if root is None else _secrets(root):
        start, end = node.start_mark, node.end_mark
        after = end.line + (end.column > 0)
        for number in range(start.line, min(max(after, start.line + 1), len(lines))):
            before = lines[number][: start.column] if number == start.line else ""
            shown[lines[number]] = f"{before}{_NOT_SHOWN}"
    return shown


def _secrets(root: yaml.Node) -> Iterator[yaml.Node]:
    """The values of the keys above; one that an alias names stands where its anchor is."""
    seen, waiting = set[int](), [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value.lower() in _KEYS:
                    yield value
                waiting.extend((key, value))
