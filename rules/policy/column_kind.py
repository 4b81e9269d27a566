"""Tell what a column is by its name and its type: of whom a row may be, what would tell who it is, which values fit.

A name proves nothing. So it never opens anything: it makes `check` ask, and `suggest` hide.
"""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Final, Literal

from rules.catalog import Column, Table, TypeName
from rules.policy.model import Bound, Value

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
GENERIC = frozenset(
    {
        *("id", "key", "pk", "oid", "code", "no", "nr", "num", "number"),
        *("uuid", "guid", "ref", "name", "title", "label", "slug", "type", "kind"),
        *("value", "description", "position", "date", "year", "month", "day", "status", "version"),
    }
)
"""Names that many tables have, whatever they are about."""

_NUMBERS_OF = frozenset(("id", "key", "pk", "oid", "code", "no", "nr", "num", "number", "uuid", "guid", "ref", "fk"))
_PERSONAL = frozenset(
    {
        *("email", "mail", "phone", "telephone", "mobile", "cellphone", "fax", "street"),
        *("address", "postcode", "zip", "zipcode", "postalcode", "firstname", "lastname", "surname"),
        *("forename", "givenname", "familyname", "fullname", "middlename", "maidenname", "birthdate", "birthday"),
        *("dateofbirth", "dob", "dateofbirth", "dob", "birthname", "ssn", "passport", "iban"),
        *("bic", "taxid", "socialsecurity", "nationalid", "ipaddress", "ip", "username", "login"),
        *("password", "passwd", "latitude", "longitude", "salary", "income", "gender", "sex"),
        *("ethnicity", "religion", "contact", "contactname", "creditcard", "cardnumber", "cvv", "licenseplate"),
        *("licence", "signature", "photo"),
    }
)
_IDENTIFYING = _PERSONAL - {"gender", "sex", "salary", "income", "ethnicity", "religion", "birthdate", "birthday"} - {
    "dateofbirth", "dob", "zip", "zipcode", "postcode", "postalcode",
}  # fmt: skip
_SAYING_NOTHING = GENERIC | {
    "tbl",
    "table",
    "dim",
    "fact",
    "app",
    "sys",
    "dbo",
    "master",
    "data",
    "info",
    "base",
    "main",
}
_OF_NOBODY = frozenset(("id", "type", "kind", "count", "verified", "confirmed", "template", "subject", "rate"))
_FAMILIES = {
    **dict.fromkeys(("int2", "int4", "int8", "numeric", "oid"), "number"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "citext"), "text"),
}

Kind = Literal["boolean", "integer", "number", "float", "date", "timestamp", "text", "enum", "other"]

KINDS: dict[str, Kind] = {
    "bool": "boolean",
    **dict.fromkeys(("int2", "int4", "int8"), "integer"),
    "numeric": "number",
    **dict.fromkeys(("float4", "float8"), "float"),
    "date": "date",
    **dict.fromkeys(("timestamp", "timestamptz"), "timestamp"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name"), "text"),
    "enum": "enum",
}  # fmt: skip
WIDTHS = {"int2": 16, "int4": 32, "int8": 64}


@lru_cache(8192)  # asked for each column and key: 100 tables are compared in a tenth of the time
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case and in the singular.

    Example:
        >>> words_of("billing_CustomerIDs"), words_of("addresses"), words_of("CATEGORIES")
        (('billing', 'customer', 'id'), ('address',), ('category',))
    """
    words = _WORD.findall(name.replace("IDs", "Ids"))
    return tuple(_singular(word.lower()) for word in words)


def column_words(column: str, table: Table) -> tuple[str, ...]:
    """The words of a column, without the prefix that all columns of its table have: c_custkey is the custkey."""
    words = words_of(column)
    firsts = {words_of(column.name)[:1] for column in table.columns}
    return words[1:] if len(table.columns) > 1 and len(firsts) == 1 and len(words) > 1 else words


def noun_of(table: Table) -> str:
    """Return the name of one row of a table."""
    return "".join(words_of(table.name.name))


def key_names(key: str, table: Table) -> tuple[frozenset[str], frozenset[str]]:
    """Name a table's key as others call it: names that mean it wherever they stand, and those that end names.

    Example:
        >>> from rules.catalog import TableName
        >>> customers = Table(TableName("public", "customers"), "table", ())
        >>> sorted(key_names("id", customers)[0])[:3], sorted(key_names("email", customers)[1])
        (['customercode', 'customerfk', 'customerguid'], ['email'])
    """
    noun, words = noun_of(table), column_words(key, table)
    anywhere = {noun + suffix for suffix in _NUMBERS_OF} | {suffix + noun for suffix in ("id", "fk")}
    joined = "".join(words)
    if joined in GENERIC:
        return frozenset(anywhere | {noun + joined}), frozenset()
    if words[-1] in _NUMBERS_OF and len(words) > 1:  # customer_id: no other table means something else by it
        return frozenset(anywhere | {joined}), frozenset()
    return frozenset(anywhere), frozenset({joined})


def resembles(column: Column, of: Table, key: Column) -> bool:
    """Return whether a column may hold the key of a table by its type and a word in common, or its abbreviation.

    Example:
        >>> from rules.catalog import TableName
        >>> number = lambda name: Column(name, TypeName("integer", "int4"), 1)
        >>> patients = Table(TableName("clinical", "patients"), "table", (number("patient_id"),))
        >>> names = ("pid", "pat_no", "ptid", "sbTxPatientNr", "pulse", "plan_id", "visit_id")
        >>> [name for name in names if resembles(number(name), patients, patients.columns[0])]
        ['pid', 'pat_no', 'ptid', 'sbTxPatientNr']
    """
    if not are_joinable(column.type, key.type) or column.type.base == "bool":
        return False
    nouns = {
        stem for stem in map(_stem, (*words_of(of.name.name), *words_of(key.name))) if len(stem) > 2
    } - _SAYING_NOTHING
    words = words_of(column.name)
    stems = [stem for stem in map(_stem, words) if stem]
    is_number = bool(words) and (words[-1] in _NUMBERS_OF or _stem(words[-1]) != words[-1])
    is_alone = is_number and len(stems) == 1
    return any(
        stem == noun
        or (is_number and (len(stem) > 2 or is_alone) and (_abbreviates(stem, noun) or _abbreviates(noun, stem)))
        for stem in stems
        for noun in nouns
    )


def _stem(word: str) -> str:
    """A word without the end that makes it a number of something: custid is of a cust, id of nothing."""
    if word in _NUMBERS_OF:
        return ""
    ends = [end for end in _NUMBERS_OF if word.endswith(end)]
    return word.removesuffix(max(ends, key=len)) if ends else word


def _abbreviates(short: str, word: str) -> bool:
    """Return whether a word has these letters in this order, its first one included."""
    letters = iter(word)
    return short[:1] == word[:1] and len(short) < len(word) and all(letter in letters for letter in short)


def stands_in(names: frozenset[str], words: tuple[str, ...], *, at_end: bool) -> bool:
    """Return whether some words in a row, or the last ones, are one of these names."""
    ends = (len(words),) if at_end else range(1, len(words) + 1)
    return any("".join(words[start:end]) in names for end in ends for start in range(end))


def are_joinable(left: TypeName, right: TypeName) -> bool:
    """Return whether values of both are compared without ado, an array's by its elements."""
    return family_of(left) == family_of(right)


def family_of(type_name: TypeName) -> str:
    """Return what kind of value identifies: a number, a text, or a type of its own."""
    base = type_name.name if type_name.base in ("array", "other") else type_name.base
    return _FAMILIES.get(base, base)


def personal_columns(columns: Iterable[Column], table: Table) -> list[str]:
    """Columns that seem to be about a person: how to reach or recognise one, and what one keeps for oneself."""
    return [column.name for column in columns if _means(column, table, _PERSONAL)]


def identifies(column: Column, table: Table, *, of_units: bool = False) -> bool:
    """Tell whether a column seems to identify somebody: nothing to group by, and nothing to show. A unit has a
    name, and may have a second key."""
    is_name = of_units and column_words(column.name, table)[-1:] == ("name",) and column.type.base != "bool"
    is_name |= of_units and table.is_unique((column.name,))
    return is_name or _means(column, table, _IDENTIFYING)


def numbers_something(column: Column, table: Table) -> bool:
    """Return whether a column seems to be a number of something: nothing to add up."""
    words = column_words(column.name, table)
    return bool(words) and words[-1] in _NUMBERS_OF


def _means(column: Column, table: Table, names: frozenset[str]) -> bool:
    words = column_words(column.name, table)
    if column.type.base == "bool" or not words or words[-1] in _OF_NOBODY:
        return False
    return stands_in(names, words, at_end=False)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "shes", "ches")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 2 else word


def kind_of(type_name: TypeName) -> Kind:
    return KINDS.get(type_name.base, "other")


_LARGEST: Final = {"float4": Decimal("3.4e38"), "float8": Decimal("1.79e308")}
_LEAST_REAL: Final = Decimal("1e-45")
_LARGEST_NUMERIC: Final = Decimal("1e131071")


def _has_room(type_name: TypeName, number: Decimal) -> bool:
    """Tell whether a type holds numbers so large, and a real one so small."""
    is_tiny = type_name.base == "float4" and 0 < abs(number) < _LEAST_REAL
    return abs(number) <= _LARGEST.get(type_name.base, _LARGEST_NUMERIC) and not is_tiny


def misfits(lower: Bound, upper: Bound, type_name: TypeName) -> str:
    """Explain why no value of a column, which has few digits, can lie between two that fit; "" when some can."""
    step = _step(type_name)
    limits = [_counted(bound) for bound in (lower, upper)]
    low, high = limits
    if step is None or low is None or high is None:
        return ""
    first, last = ceil(low / step), floor(high / step)
    if type_name.base == "numeric":
        largest = 10 ** ((type_name.modifier - 4) >> 16 & 0xFFFF) - 1
        first, last = max(first, -largest), min(last, largest)
    return f"no value of type {type_name.sql} lies between {lower} and {upper}" if first > last else ""


def _step(type_name: TypeName) -> Fraction | None:
    """How far apart the values of numeric(p, s) are, or the microseconds of timestamp(p)."""
    if type_name.base == "numeric" and type_name.scale is not None:
        return Fraction(10) ** -type_name.scale
    is_rounded = type_name.base in ("timestamp", "timestamptz") and type_name.modifier >= 0
    return Fraction(10) ** (6 - type_name.modifier) if is_rounded else None


def _counted(bound: Bound) -> Fraction | None:
    """A number, or the microseconds of a moment; whole days are apart by more than any step."""
    match bound:
        case datetime():
            plain = bound.astimezone(UTC).replace(tzinfo=None) if bound.tzinfo else bound
            return Fraction((plain - datetime.min) // timedelta(microseconds=1))
        case date():
            return None
    return Fraction(bound)


def _is_in_calendar(moment: datetime) -> bool:
    try:
        return moment.tzinfo is None or moment.astimezone(UTC).year > 0
    except OverflowError:
        return False


def misfit(value: Bound | Value, type_name: TypeName) -> str:
    """Explain why a column of this kind cannot hold a value; "" when it can."""
    kind = kind_of(type_name)
    match kind, value:
        case "boolean", bool():
            return ""
        case "integer", int() if not isinstance(value, bool):
            limit = 2 ** (WIDTHS[type_name.base] - 1)
            return "" if -limit <= value < limit else f"{value} does not fit into {type_name.sql}"
        case (("number" | "float"), (int() | Decimal())) if not isinstance(value, bool):
            return "" if _has_room(type_name, Decimal(value)) else f"{value} does not fit into {type_name.sql}"
        case "timestamp", datetime():
            return "" if _is_in_calendar(value) else f'"{value}" lies outside the years 1 to 9999 of UTC'
        case (("date" | "timestamp"), date()) if not isinstance(value, datetime):
            return ""
        case "text", str():
            return ""
        case "text", _:
            return f'{value} is not text: write it in quotes, "{value}"'
        case "enum", str():
            return "" if value in type_name.labels else f'"{value}" is not a label of {type_name.sql}'
    return f'"{value}" is not a value of type {type_name.sql}'
