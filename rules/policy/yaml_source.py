"""YAML as a rules file needs it: every value remembers its line, nothing is guessed, nothing is said twice.

YAML 1.1 reads `no` as false, `1e-6` as a string and `0.1` as a binary float. In a rules file `no` is a country, numbers
are exact decimals, and a key that stands twice is a mistake.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

import yaml

Path = tuple[str | int, ...]
Tree = dict[str, "Tree"] | list["Tree"] | str | int | bool | Decimal | date | None

INTEGER = re.compile(r"[-+]?\d[\d_]*")
DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[-+]\d{2}:?\d{2})?")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
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
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise RulesError(self.file, (Problem(line, "", f"not YAML: {error.problem}"),)) from None
        except yaml.YAMLError:
            raise RulesError(self.file, (Problem(1, "", "not YAML: invalid character"),)) from None
        return None if root is None else self._value(root, ())

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
            self.problems.append(Problem(self.lines[path], dotted(path), f'"{text}" is not a date'))
            return None

    def _expand(self, text: str, path: Path) -> str:
        """Secrets stay out of the file: ${NAME} comes from the environment."""
        for name in VARIABLE.findall(text):
            if name not in self._environment:
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
