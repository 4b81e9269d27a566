"""What names mean inside a subquery: columns of its own rows, or of the row around it."""

from rules.refusal import NotSupported
from rules.relation.bind_expression import Leaf
from rules.relation.expression import Column, Operand
from rules.relation.scope import Scope
from rules.relation.subquery_shape import Written
from rules.sql import syntax as s


def calls_leaf(values: dict[s.Call, Column]) -> Leaf:
    """In what is computed from aggregates, names mean nothing: the subquery has one row."""

    def leaf(given: s.Expression) -> Operand | None:
        if isinstance(given, s.Name):
            message = f'the column "{given.parts[-1]}" must be in an aggregate here'
            raise NotSupported(message, hint="Take it out of the subquery.")
        return values.get(given) if isinstance(given, s.Call) else None

    return leaf


def either_leaf(scope: Scope, columns: dict[int, Column], outer: Scope, outside: dict[int, Column]) -> Leaf:
    """In a correlated subquery a name is first looked for inside, then outside."""

    def leaf(given: s.Expression) -> Operand | None:
        if isinstance(given, Written):
            found = scope.find_subquery(given)
            return None if found is None else columns[found]
        if not isinstance(given, s.Name):
            return None
        number = scope.find(given.parts)
        if number is not None:
            return columns[number]
        number = outer.find(given.parts)
        if number is None:
            raise scope.refuse(given.parts)
        if number not in outside:
            raise NotSupported(f'the column "{given.parts[-1]}" must be in GROUP BY or in an aggregate')
        return outside[number]

    return leaf
