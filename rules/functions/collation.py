"""What depends on a collation is refused of texts whose column has one of its own: they are read in the database's.

Columns of two collations can then be compared at all, whatever the analyst's query is made into. Equality, and LIKE,
are the same in every deterministic collation. Which of two texts is less, and what is a letter, are not.
"""

from rules.refusal import NotSupported
from rules.values.expression import Expression, columns_in, is_collated


def check_collation(what: str, *expressions: Expression) -> None:
    """Refuse an operation on texts that could give another result than by the column's own collation."""
    for expression in expressions:
        if is_collated(expression):
            name = next(column.name for column in columns_in(expression) if column.collated) or "this column"
            message = f'{what} depends on the collation, and "{name}" has another one than the database'
            raise NotSupported(message, hint="Use =, IN or LIKE, which are the same in every collation.", about=name)
