"""Say which types the twin has: PostgreSQL's own, and enums and domains of these. Columns of all others are text there.

Types of extensions, composites and what is made of them are on the real database alone.
"""

from collections.abc import Collection
from typing import Final

from rules.catalog import Catalog, TableName, TypeName

TEXT: Final = TypeName("text", "text", name="text")
_MISSING: Final = ("xml",)  # the embedded server is built without it


def usable_types(catalog: Catalog) -> frozenset[TableName]:
    """The enums and those domains that are made of nothing but what the twin has."""
    usable = {enum.name for enum in catalog.enums}
    waiting = {domain.name: domain.type for domain in catalog.domains}
    while ready := {name for name, kind in waiting.items() if is_on_twin(kind, usable)}:
        usable |= ready
        waiting = {name: kind for name, kind in waiting.items() if name not in ready}
    return frozenset(usable)


def is_on_twin(kind: TypeName, usable: Collection[TableName]) -> bool:
    """Tell whether the twin has a type, from the enums and domains that it has."""
    if kind.extension is not None:
        return False
    if kind.schema == "pg_catalog":
        return kind.name not in _MISSING
    return TableName(kind.schema, kind.name) in usable
