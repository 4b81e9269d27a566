"""The enums that casts name: which one a name means, and how PostgreSQL writes its type with an empty search path."""

from functools import lru_cache

from rules.catalog import Catalog, EnumType
from rules.sql.grammar import deparse_expression
from rules.values.types import Type


def find_enum(written: str, catalog: Catalog, search_path: tuple[str, ...] = ()) -> Type | None:
    """The enum of this name; of several the first on the path, or the first of all where no schema of it has one."""
    plain = written.replace('"', "")
    found = [enum for enum in catalog.enums if plain in (enum.name.name, f"{enum.name.schema}.{enum.name.name}")]
    if not found:
        return None
    places = {schema: place for place, schema in enumerate(search_path)}
    enum = min(found, key=lambda enum: places.get(enum.name.schema, len(places)))
    return _type_of(enum)


@lru_cache(maxsize=256)
def _type_of(enum: EnumType) -> Type:
    name = f"{_quoted(enum.name.schema)}.{_quoted(enum.name.name)}"
    return Type("enum", name=name, labels=enum.labels, is_ambiguous=enum.is_ambiguous)


def _quoted(name: str) -> str:
    """As quote_identifier does: names that are keywords have quotes too."""
    return deparse_expression({"ColumnRef": {"fields": [{"String": {"sval": name}}]}})
