"""YAML as a rules file needs it: every value remembers its line, nothing is guessed, nothing is said twice.

One key can be changed in the text: comments, order, quotes and variables of all other lines stay as they are. What
comes out is read again and compared with what was meant: a text that cannot be edited so is refused, never bent.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Final

import yaml

from rules.frozen import frozen

Path = tuple[str | int, ...]
Tree = dict[str, "Tree"] | list["Tree"] | str | int | bool | Decimal | date | None
INTEGER = re.compile(r"[-+]?\d[\d_]*")
DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[-+]\d{2}:?\d{2})?")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_COLUMNS: Final = "lines that belong together begin in the same column"
_HINTS: Final = {  # what YAML's own words for the usual slips mean
    r"'\t'": "indent with spaces, not with tabs",
    "mapping values are not allowed here": f"{_COLUMNS}; quote a value with a colon",
    "expected <block end>": _COLUMNS,
    "found undefined alias": "quote a value that begins with *",
}


@frozen
class Problem:
    """One thing wrong with a rules file, and what would be right."""

    line: int
    path: str
    message: str
    hint: str = ""


class RulesError(Exception):
    """A rules file that cannot be used: all that is wrong with it, at once."""

    def __init__(self, file: str, problems: tuple[Problem, ...]) -> None:
        self.file, self.problems = file, problems
        super().__init__("\n".join(map(self._line, problems)))

    def _line(self, problem: Problem) -> str:
        where = f"{self.file}:{problem.line}: " + (f"{problem.path}: " if problem.path else "")
        return where + problem.message + (f" ({problem.hint})" if problem.hint else "")


class Source:
    """A YAML document as plain values, with the line of each path."""

    def __init__(self, text: str, file: str, environment: Mapping[str, str]) -> None:
        self.file = file
        self.lines: dict[Path, int] = {}
        self._environment = environment
        self.problems: list[Problem] = []
        self.unset: set[Path] = set()  # what names a variable that is not set
        self.tree = self._read(text)

    def line(self, path: Path) -> int:
        """The line of a path, or of the nearest thing around it that is in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def line_of(self, path: str) -> int:
        """The same for a path as people write it."""
        around = [known for known in self.lines if known and f"{path}.".startswith(f"{dotted(known)}.")]
        return self.line(max(around, key=len, default=()))

    def _read(self, text: str) -> Tree:
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
            return None if root is None else self._value(root, ())
        except RecursionError:
            raise RulesError(self.file, (Problem(1, "", "lists or keys are nested too deeply"),)) from None
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            said = " ".join(filter(None, (error.context, error.problem))).replace("<stream end>", "end of file")
            hint = next((hint for words, hint in _HINTS.items() if words in said), "")
            raise RulesError(self.file, (Problem(line, "", f"not YAML: {said}", hint),)) from None
        except yaml.YAMLError:
            raise RulesError(self.file, (Problem(1, "", "not YAML: invalid character"),)) from None

    def _value(self, node: yaml.Node, path: Path) -> Tree:
        self.lines.setdefault(path, node.start_mark.line + 1)
        match node:
            case yaml.MappingNode():
                return self._mapping(node, path)
            case yaml.SequenceNode():
                return [self._value(item, (*path, number)) for number, item in enumerate(node.value)]
            case yaml.ScalarNode():
                return self._scalar(node, path)
        raise TypeError(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> Tree:
        mapping: dict[str, Tree] = {}
        for key, value in node.value:
            name = str(key.value)
            line = key.start_mark.line + 1
            if name in mapping:
                self.problems.append(Problem(line, dotted((*path, name)), "this key is repeated"))
            self.lines[(*path, name)] = line
            mapping[name] = self._value(value, (*path, name))
        return mapping

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Tree:
        text: str = node.value
        if node.style in ("'", '"', "|", ">"):
            return self._expand(text, path)
        try:
            return _plain(text, self._expand(text, path))
        except (ValueError, InvalidOperation):
            said = "not a date" if DAY.fullmatch(text) or MOMENT.fullmatch(text) else "too long a number"
            self.problems.append(Problem(self.lines[path], dotted(path), f'"{text[:60]}" is {said}'))
            return None

    def _expand(self, text: str, path: Path) -> str:
        """Secrets stay out of the file: ${NAME} comes from the environment."""
        for name in VARIABLE.findall(text):
            if name not in self._environment:
                self.unset.add(path)
                self.problems.append(Problem(self.lines[path], dotted(path), f"the variable {name} is not set"))
        return VARIABLE.sub(lambda match: self._environment.get(match[1], ""), text)


def _plain(text: str, expanded: str) -> Tree:
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if INTEGER.fullmatch(text):
        return int(text)
    if DECIMAL.fullmatch(text):
        return Decimal(text)
    if DAY.fullmatch(text):
        return date.fromisoformat(text)
    if MOMENT.fullmatch(text):
        return datetime.fromisoformat(text)
    return expanded


def dotted(path: Path) -> str:
    """A path as people write it: tables.orders.columns.amount."""
    return ".".join(map(str, path))


_KEEPS: Final = "edit the file by hand"


class CannotEdit(ValueError):
    """A file whose layout is none that can be changed line by line."""


def put(text: str, path: tuple[str, ...], value: str) -> str:
    """Set the key at a path to a value on one line, which is YAML text; what is above the key has to be there.

    Example:
        >>> print(put("analysts:  # who may ask\\n  ada: {epsilon: 5}\\n", ("analysts", "ada", "epsilon"), "2"), end="")
        analysts:  # who may ask
          ada: {epsilon: 2}
    """
    *above, name = path
    owner = _find(text, tuple(above))
    present = next((pair for pair in owner.value if pair[0].value == name), None)
    if present is not None:
        made = _replaced(text, present, owner, f"{_key(name)}: {value}")
    elif owner.flow_style:
        made = _into_flow(text, owner, f"{_key(name)}: {value}")
    else:
        made = _into_block(text, owner, f"{_key(name)}: {value}")
    return _checked(text, made, path, _read(value))


def remove(text: str, path: tuple[str, ...]) -> str:
    """Take a key out, with all below it.

    Example:
        >>> print(remove("analysts:\\n  # our first\\n  ada: {epsilon: 5}\\n  bob: {}\\n", ("analysts", "ada")), end="")
        analysts:
          # our first
          bob: {}
    """
    *above, name = path
    owner = _find(text, tuple(above))
    place = next((place for place, pair in enumerate(owner.value) if pair[0].value == name), None)
    if place is None:
        raise CannotEdit(f"there is no {'.'.join(path)}")
    key, value = owner.value[place]
    if owner.flow_style:
        last = place == len(owner.value) - 1
        start = owner.value[place - 1][1].end_mark.index if last and place else key.start_mark.index
        end = value.end_mark.index if last else owner.value[place + 1][0].start_mark.index
        return _checked(text, text[:start] + text[end:], path, None)
    lines = text.splitlines(keepends=True)
    del lines[key.start_mark.line : _last_line(value) + 1]
    return _checked(text, "".join(lines), path, None)


def _key(name: str) -> str:
    """A key as YAML text."""
    plain = name.isascii() and name.isidentifier() and isinstance(_read(name), str)
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return name if plain else f'"{escaped}"'


def _find(text: str, path: tuple[str, ...]) -> yaml.MappingNode:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for number, name in enumerate(path, start=1):
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        node = next((value for key, value in pairs if key.value == name), None)
        if node is None:
            raise CannotEdit(f"there is no {'.'.join(path[:number])}")
    if not isinstance(node, yaml.MappingNode) or not node.value:
        raise CannotEdit(f"{'.'.join(path)} has no keys: {_KEEPS}")
    return node


def _replaced(text: str, pair: tuple[yaml.Node, yaml.Node], owner: yaml.MappingNode, line: str) -> str:
    key, value = pair
    if not owner.flow_style and isinstance(value, yaml.CollectionNode) and not value.flow_style:
        lines = text.splitlines(keepends=True)
        indent = " " * key.start_mark.column
        lines[key.start_mark.line : _last_line(value) + 1] = [f"{indent}{line}\n"]
        return "".join(lines)
    return text[: key.start_mark.index] + line + text[value.end_mark.index :]


def _into_flow(text: str, owner: yaml.MappingNode, line: str) -> str:
    end = owner.value[-1][1].end_mark.index
    return f"{text[:end]}, {line}{text[end:]}"


def _into_block(text: str, owner: yaml.MappingNode, line: str) -> str:
    """After the last line that holds something of it: what follows may be comments on what comes next."""
    lines, last = text.splitlines(keepends=True), _last_line(owner)
    if not lines[last].endswith("\n"):
        lines[last] += "\n"
    lines.insert(last + 1, " " * owner.value[0][0].start_mark.column + f"{line}\n")
    return "".join(lines)


def _last_line(node: yaml.Node) -> int:
    return max(leaf.end_mark.line for leaf in _leaves(node))


def _leaves(node: yaml.Node) -> Iterator[yaml.Node]:
    """Scalars and flow collections: of these PyYAML knows where they end."""
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        raise CannotEdit(f"a text of several lines stands at line {node.start_mark.line + 1}: {_KEEPS}")
    if not isinstance(node, yaml.CollectionNode) or node.flow_style:
        yield node
        return
    for child in node.value:
        for part in child if isinstance(child, tuple) else (child,):
            yield from _leaves(part)


def _read(text: str) -> object:
    """As texts: what a scalar means depends on who reads it."""
    return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 (BaseLoader makes texts, lists and mappings only)


def _checked(before: str, after: str, path: tuple[str, ...], value: object) -> str:
    """The text, if it says what was said before but for this one key."""
    meant = _read(before)
    owner = meant
    for name in path[:-1]:
        assert isinstance(owner, dict), "it was found as a mapping"
        owner = owner[name]
    assert isinstance(owner, dict), "it was found as a mapping"
    owner.pop(path[-1], None)
    if value is not None:
        owner[path[-1]] = value
    try:
        reread = _read(after)
    except yaml.YAMLError:
        reread = None
    if reread != meant:
        raise CannotEdit(f"{'.'.join(path)} cannot be changed in this layout: {_KEEPS}")
    return after
