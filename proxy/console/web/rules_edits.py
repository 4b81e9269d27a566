"""Edits of one table in the text of a rules file: what is not edited stays as it is written, comments too."""

import datetime
import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarfloat import ScalarFloat

from rules.refusal import Refusal

_WIDEST: Final = 4096  # lines are not broken anew
_LONGEST_SCALAR: Final = 200  # of a number or a date; more may be brackets within each other, or digits without end
_OF_PROTECTED: Final = ("unit", "rows_per_unit", "rows_auto", "sum_per_unit")  # of tables that are not public
_NUMBERS: Final = (int, float, ScalarFloat, datetime.date)


class BadEdit(Refusal):
    """A field of the form that cannot stand in a rules file."""

    sqlstate = "22023"  # invalid_parameter_value


@dataclass(frozen=True, slots=True)
class ColumnEdit:
    """The rules of one column as a form has them: texts, "" for what is not said."""

    hidden: bool = False
    lower: str = ""
    upper: str = ""
    values: tuple[str, ...] = ()
    other: bool = False
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class TableEdit:
    """The rules of one table as a form has them. `columns` has all that the form shows."""

    public: bool = False
    because: str = ""
    unit: str = ""
    rows_per_unit: str = ""
    columns: Mapping[str, ColumnEdit] = field(default_factory=dict)


def read_table(text: str, table: str) -> TableEdit:
    """One table as its text has it; raises BadEdit where there is none."""
    rules = _tables(_yaml(), text)[1].get(table)
    match rules:
        case "public":
            return TableEdit(public=True)
        case CommentedMap():
            columns = {str(name): _column(rule) for name, rule in (rules.get("columns") or {}).items()}
            public = rules.get("public")
            said = public if isinstance(public, CommentedMap) else rules
            because = _text(said.get("because"))
            unit, rows = (_text(rules.get(key)) for key in ("unit", "rows_per_unit"))
            return TableEdit(said is public or public is True, because, unit, rows, columns)
    raise BadEdit(f'the rules of "{table}" are not of a form that can be edited here')


def listed(lines: str) -> tuple[str, ...]:
    """Values as a form can have them, one on each line: an empty one, or blanks around one, are only in the file."""
    return tuple(line.strip() for line in lines.splitlines() if line.strip())


def edit_table(text: str, table: str, edit: TableEdit, texts: frozenset[str]) -> str:
    """The text with other rules of one table; `texts` are its columns whose values are texts."""
    before = read_table(text, table)
    if _said(before) == _said(edit):
        return text
    yaml = _yaml()
    document, tables = _tables(yaml, text)
    rules = tables[table]
    if not isinstance(rules, CommentedMap):  # the word "public" alone
        rules = tables[table] = CommentedMap(public=True)
        rules.fa.set_flow_style()
    if edit.public != before.public or (edit.public and edit.because != before.because):
        _put_public(rules, edit)
    if not edit.public:
        for key in ("unit", "rows_per_unit"):
            if getattr(edit, key) != getattr(before, key):
                _put(rules, key, getattr(edit, key))
    _edit_columns(rules, before, edit, texts)
    if rules == {"public": True}:
        tables[table] = "public"
    written = io.StringIO()
    yaml.dump(document, written)
    return written.getvalue()


def _said(edit: TableEdit) -> TableEdit:
    """Without columns of which nothing is said."""
    return replace(edit, columns={name: column for name, column in edit.columns.items() if column != ColumnEdit()})


def _yaml() -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _WIDEST
    return yaml


def _tables(yaml: YAML, text: str) -> tuple[CommentedMap, CommentedMap]:
    try:
        document = yaml.load(text)
    except YAMLError:
        raise BadEdit("the rules file is not YAML any more", hint="noisegate check says where.") from None
    tables = document.get("tables") if isinstance(document, CommentedMap) else None
    if not isinstance(tables, CommentedMap):
        raise BadEdit("the rules file has no tables")
    return document, tables


def _put_public(rules: CommentedMap, edit: TableEdit) -> None:
    """Its columns keep their rules either way: one that is hidden stays hidden."""
    for key in ("public", "because", *(_OF_PROTECTED if edit.public else ())):
        rules.pop(key, None)
    if not edit.public:
        return
    because = CommentedMap(because=_checked(edit.because))
    because.fa.set_flow_style()
    rules.insert(0, "public", because if edit.because else True)


def _column(rules: object) -> ColumnEdit:
    if rules == "hidden":
        return ColumnEdit(hidden=True)
    if not isinstance(rules, CommentedMap):
        return ColumnEdit()
    return ColumnEdit(
        hidden=rules.get("hidden") is True,
        lower=_text(rules.get("lower")),
        upper=_text(rules.get("upper")),
        values=listed("\n".join(map(_text, rules.get("values") or ()))),
        other=rules.get("other") is True,
        nullable=rules.get("nullable") is not False,
    )


def _text(value: object) -> str:
    """A scalar as it is written."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    written = io.StringIO()
    if isinstance(value, _NUMBERS):
        YAML().dump([value], written)
        return written.getvalue().strip().removeprefix("- ")
    return str(value)


def _edit_columns(rules: CommentedMap, before: TableEdit, edit: TableEdit, texts: frozenset[str]) -> None:
    columns = rules.get("columns")
    for name, column in edit.columns.items():
        known = before.columns.get(name, ColumnEdit())
        if column == known:
            continue
        if columns is None:
            columns = rules["columns"] = CommentedMap()
        _edit_column(columns, name, known, column, is_text=name in texts)
    if columns is not None and not columns:
        del rules["columns"]


def _edit_column(columns: CommentedMap, name: str, known: ColumnEdit, edit: ColumnEdit, *, is_text: bool) -> None:
    if edit.hidden:
        columns[name] = "hidden"
        return
    rules = columns.get(name)
    if not isinstance(rules, CommentedMap):
        rules = columns[name] = CommentedMap()
        rules.fa.set_flow_style()
    rules.pop("hidden", None)
    for key in ("lower", "upper"):
        if getattr(edit, key) != getattr(known, key):
            _put(rules, key, getattr(edit, key))
    if edit.values != known.values:
        rules.pop("values", None)
        if edit.values:
            items = CommentedSeq(_checked(value) if is_text else _scalar(value) for value in edit.values)
            items.fa.set_flow_style()
            rules["values"] = items
    for key, usual in (("other", False), ("nullable", True)):
        if getattr(edit, key) != getattr(known, key):
            rules.pop(key, None)
            if getattr(edit, key) is not usual:
                rules[key] = not usual
    if not rules:
        del columns[name]


def _put(rules: CommentedMap, key: str, text: str) -> None:
    if text:
        rules[key] = _scalar(text)
    else:
        rules.pop(key, None)


def _scalar(text: str) -> object:
    """A number, a date or a word as YAML reads it, and as it is written."""
    checked = _checked(text)
    if len(checked) > _LONGEST_SCALAR:
        return checked
    try:
        value = YAML().load(checked)
    except (YAMLError, ValueError):
        return checked
    return value if isinstance(value, (bool, *_NUMBERS)) else checked


def _checked(text: str) -> str:
    """A variable would bring a secret of the machine to a page."""
    if "${" in text:
        raise BadEdit("variables can be written into the rules file by hand only")
    if any(ord(character) < 32 for character in text):
        raise BadEdit("a value has a sign that cannot be printed")
    return text
