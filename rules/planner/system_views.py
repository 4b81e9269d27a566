"""Virtual relations in an outer statement: each becomes the rows of an array that is filled when it is answered."""

from collections.abc import Sequence

from rules.planner.relations import replace_relations, source, tables_in
from rules.sql.grammar import Node
from rules.sql.system_views import SCHEMA, SystemView, find_virtual


class SystemViewHoles:
    """The virtual relations of one statement. Their holes come after all others, in the order of `names`."""

    def __init__(self, search_path: Sequence[str], holes: int) -> None:
        self._search_path, self._holes = search_path, holes
        self._names: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def put_into(self, tree: Node) -> Node:
        """The statement with arrays in place of virtual relations: its holes are numbered from here on."""
        if all(self._find(schema, name) is None for schema, name in tables_in(tree)):
            return tree
        return replace_relations(tree, self._rows)

    def _rows(self, schema: str | None, name: str) -> Node | None:
        """The rows as values of the relation's own type, so that its name still stands for a whole row."""
        virtual = self._find(schema, name)
        if virtual is None:
            return None
        if name not in self._names:
            self._names.append(name)
        hole = self._holes + 1 + self._names.index(name)
        return source(f"pg_catalog.unnest(${hole}::pg_catalog.text[]::{virtual.qualified}[]) AS {name}")

    def _find(self, schema: str | None, name: str) -> SystemView | None:
        return find_virtual(SCHEMA if schema is None and SCHEMA in self._search_path else schema or "", name)
