"""One spelling for one meaning: PostgreSQL's tree with everything that is said in several ways said in one.

The planner's parser is not asked what PostgreSQL's special syntax means: EXTRACT, AT TIME ZONE, COALESCE, ROLLUP, named
windows and odd operators become plain calls here, types become their full names. What the planner has no word for
becomes an operator of the reserved schema, around its own parts, so that what is inside is still seen.

Each SELECT is given a number: a first entry of its list, named by the reserved word.
"""

from rules.sql.normalize.nodes import RESERVED
from rules.sql.normalize.spelling import Spelled, spelled, spelled_expression

__all__ = ["RESERVED", "Spelled", "spelled", "spelled_expression"]
