"""Expressions of the analyst's text as typed expressions of the registry."""

from collections.abc import Callable, Sequence
from dataclasses import field
from fractions import Fraction
from functools import lru_cache

from rules.bind import in_subquery
from rules.bind.correlated_subquery import check_alone, links_of, outside_of
from rules.bind.enums import find_enum
from rules.bind.inner_answers import Links
from rules.bind.scope import PlannerContext
from rules.bind.walk_syntax import word_of
from rules.frozen import frozen, replace
from rules.functions import arrays, comparison, conditional
from rules.functions.casts import cast
from rules.functions.coerce import folded, is_open, literal, literals, number, typed
from rules.functions.function import EvalContext
from rules.functions.registry import call, operate
from rules.refusal import NotAllowed, NotSupported, Refusal
from rules.sql import syntax as s
from rules.sql.normalize.nodes import AGGREGATES
from rules.sql.system_views import BARS, SCHEMA
from rules.values.domain import ANYTHING
from rules.values.expression import FALSE, TRUE, Column, Constant, Expression, Literal, Operand, all_of, null_of
from rules.values.types import TEXT, UNKNOWN, Type, find_common, find_type

# What an expression means by itself: a column, a grouping key, an aggregate. None: look into it.
Leaf = Callable[[s.Expression], Operand | None]

_MOST_COMPARED = 100  # items of an array that are compared one by one
_LONG_CHAIN = 48  # alternatives: fewer keep the shape in which they were written, and so the keys of what was released


@frozen
class Binding:
    """The names of one place and the columns that they mean."""

    leaf: Leaf
    context: PlannerContext
    setting: EvalContext
    _bound: dict[s.Expression, Expression] = field(default_factory=dict, init=False, repr=False, compare=False)

    def bind(self, expression: s.Expression) -> Expression:
        """A whole expression; an open literal in the end is a text. A sum and an average of one share it."""
        bound = self._bound.get(expression)
        if bound is None:
            bound = self._bound[expression] = typed(self.operand(expression), self.setting)
        return bound

    def conditions(self, expressions: Sequence[s.Expression]) -> list[Expression]:
        """Conditions only choose rows, so that columns need no bounds in them."""
        binding = self.reading_whole(lambda _: True)
        return [comparison.boolean(binding.operand(expression), self.setting) for expression in expressions]

    def condition(self, expression: s.Expression) -> Expression:
        (bound,) = self.conditions((expression,))
        return bound

    def reading_whole(self, chosen: Callable[[Column], bool]) -> "Binding":
        """Read these columns as they are, not clamped to what is declared of them where they are computed with."""

        def leaf(expression: s.Expression) -> Operand | None:
            operand = self.leaf(expression)
            return _whole(operand) if isinstance(operand, Column) and chosen(operand) else operand

        return replace(self, leaf=leaf)

    def operand(self, expression: s.Expression) -> Operand:
        try:
            operand = self.leaf(expression)
            return folded(self._computed(expression), self.setting) if operand is None else operand
        except Refusal as refusal:
            refusal.about = refusal.about or word_of(expression)
            raise

    def _computed(self, expression: s.Expression) -> Operand:
        match expression:
            case s.Constant():
                return _constant(expression)
            case s.Parameter(number=index):
                return self._parameter(index)
            case s.Cast(argument=argument, type=written):
                return self._cast(argument, written)
            case s.Operator(name="subscript", arguments=(array, place)):
                return self._item(array, place)
            case s.Operator(name=name, arguments=(left, right)) if name in arrays.SIGNS:
                return self._sets(name, left, right)
            case s.Operator(name=name):
                return operate(name, tuple(map(self.operand, _operands(expression))), self.setting)
            case s.Call():
                return self._call(expression)
            case s.Case():
                return self._case(expression)
            case s.InList(argument=argument, items=items, negated=negated):
                return self._in(argument, items, negated=negated)
            case s.Quantified():
                return self._quantified(expression)
            case s.ScalarQuery() | s.Exists() | s.InQuery():
                return self._answered(expression)
        raise _refusal(expression)

    def _item(self, array: s.Expression, place: s.Expression) -> Expression:
        """array[n], and the pieces of a text that are made as an array."""
        match array:
            case s.Call(name="string_to_array", arguments=(_, _) as expressions):
                return arrays.piece(tuple(map(self.operand, expressions)), self.operand(place), self.setting)
            case s.Call(name="regexp_match", arguments=(_, _) as expressions) if place == s.Constant("number", "1"):
                return call("substring", tuple(map(self.operand, expressions)), self.setting)
        expression = self.operand(array)
        if isinstance(expression, Literal) or arrays.element_of(expression) is None:
            raise NotSupported("a subscript of this expression is not supported over protected rows")
        return arrays.item(expression, self.operand(place), self.setting)

    def _sets(self, name: str, left: s.Expression, right: s.Expression) -> Expression:
        """a @> b, a <@ b and a && b, where one may be written as a constant."""
        sides = [None if _is_written(expression) else self.operand(expression) for expression in (left, right)]
        element = next((sql_type for side in sides if side is not None and (sql_type := arrays.element_of(side))), None)
        if element is None:  # documents
            return operate(name, (self._document(left), self._document(right)), self.setting)
        one, other = (
            arrays.listed(self._array(written), element, self.setting) if side is None else side
            for side, written in zip(sides, (left, right), strict=True)
        )
        return operate(name, (one, other), self.setting)

    def _document(self, expression: s.Expression) -> Operand:
        match expression:
            case s.Cast(argument=s.Constant(kind="string", text=text), type="jsonb"):
                return Literal(text)
        return self.operand(expression)

    def _parameter(self, index: int) -> Operand:
        if not 0 < index <= len(self.context.parameters):
            raise NotSupported(f"parameter ${index} has no value")
        written, text = self.context.parameter_types[index - 1], self.context.parameters[index - 1]
        sql_type = find_type(written) or self._find_enum(written)
        if sql_type is None or sql_type.kind == "other":
            raise NotSupported(f"a parameter of type {written} is not supported over protected rows")
        return literal(text, sql_type, self.setting)

    def _cast(self, argument: s.Expression, written: str) -> Operand:
        expression = self.operand(argument)
        match expression:
            case Literal(text=text) | Constant(text=text, type=Type(kind="text" | "unknown" | "enum")) if (
                enum := self._find_enum(written)
            ):
                return literal(text, enum, self.setting)
        return cast(expression, written, self.setting)

    def _call(self, function: s.Call) -> Expression:
        if function.over is not None:
            hint = "Use a window function over aggregates, such as sum(count(*)) OVER ()."
            raise NotSupported(f'window function "{function.name}" is not supported over protected rows', hint=hint)
        if (
            function.name in AGGREGATES
            or function.star
            or function.distinct
            or function.filter
            or function.within_group
        ):
            raise NotSupported(f'aggregate "{function.name}" is not allowed in this clause')
        if function.schema is not None:
            name = f"{function.schema}.{function.name}"
            is_bar = function.schema == SCHEMA and function.name in BARS
            hint = f"Apply it to an aggregate: {name}(avg(x))." if is_bar else ""
            raise NotSupported(f'the function "{name}" is not supported over protected rows', hint=hint)
        if function.name == "width_bucket" and len(function.arguments) == 2:
            return self._bucket(*function.arguments)
        return call(function.name, tuple(map(self.operand, function.arguments)), self.setting)

    def _bucket(self, argument: s.Expression, array: s.Expression) -> Expression:
        """width_bucket(x, array of constants in their order): how many of them are not above x."""
        expression, bounds = self.operand(argument), self._array(array)
        values = [bound.value for bound in bounds if isinstance(bound, Constant) and isinstance(bound.value, Fraction)]
        if not 0 < len(values) == len(bounds) <= _MOST_COMPARED or values != sorted(values):
            raise NotSupported(f"width_bucket needs 1 to {_MOST_COMPARED} constant numbers in ascending order")
        below = ((operate("<", (expression, bound), self.setting), number(str(at))) for at, bound in enumerate(bounds))
        is_null = operate("is null", (expression,), self.setting)
        branches = ((is_null, null_of(UNKNOWN)), *below)
        return conditional.case(branches, number(str(len(bounds))), self.setting)

    def _case(self, case: s.Case) -> Expression:
        default = null_of(UNKNOWN) if case.default is None else self.operand(case.default)
        if case.operand is None:
            tested = tuple((self.condition(test), self.operand(result)) for test, result in case.branches)
            return conditional.case(tested, default, self.setting)
        branches = tuple((self.operand(test), self.operand(result)) for test, result in case.branches)
        return conditional.simple_case(self.operand(case.operand), branches, default, self.setting)

    def _answered(self, subquery: s.ScalarQuery | s.Exists | s.InQuery) -> Operand:
        """A subquery over answers, whose rows are known before protected ones are asked for."""
        match subquery:
            case s.ScalarQuery(query=query):
                links = links_of(query, self.context)
                return self._lookup(query, links) if links else self.context.released_value(query, "value")
            case s.Exists(query=query):
                check_alone(query, self.context)
                return self.context.released_value(query, "exists")
            case s.InQuery(query=query):
                check_alone(query, self.context)
                rows = self.context.released_list(query)
                return in_subquery.among(
                    tuple(map(self.operand, in_subquery.written(subquery))), subquery, rows, self.setting
                )

    def _lookup(self, query: s.Query, links: Links) -> Operand:
        """The answer for what the row around the subquery has, or where that has none the one of no rows."""
        outside = tuple(map(self.operand, outside_of(links)))
        branches = list[tuple[Expression, Operand]]()
        default = self.operand(s.Constant("null"))  # of an answer that is not there yet
        for may_be_found, *keys, answer in self.context.released_rows(query, links):
            if may_be_found == FALSE:
                default = answer
                continue
            pairs = zip(outside, keys, strict=True)
            tests = tuple(comparison.compare("=", one, other, self.setting) for one, other in pairs)
            branches.append((all_of(tests), answer))
        return conditional.case(tuple(branches), default, self.setting)

    def _in(self, argument: s.Expression, items: tuple[s.Expression, ...], *, negated: bool) -> Expression:
        expressions = tuple(map(self.operand, items))
        operand = self.operand(argument)
        expressions = comparison.listed(operand, expressions, self.setting)
        return comparison.in_list(operand, expressions, self.setting, negated=negated)

    def _quantified(self, quantified: s.Quantified) -> Expression:
        """x = ANY (array of constants) is IN, x <> ALL (array) is NOT IN; with other operators it is OR and AND."""
        if not _is_written(quantified.array):
            array = self.bind(quantified.array)
            if quantified.operator in comparison.COMPARISONS and arrays.element_of(array) is not None:
                operand, sign = self.operand(quantified.argument), quantified.operator
                return arrays.compared(operand, sign, array, self.setting, every=quantified.all)
        items = self._array(quantified.array)
        if (quantified.operator, quantified.all) in (("=", False), ("<>", True)):
            return comparison.in_list(self.operand(quantified.argument), items, self.setting, negated=quantified.all)
        if len(items) > _MOST_COMPARED:
            raise NotSupported(f"{quantified.operator} with more than {_MOST_COMPARED} items is not supported")
        argument = self.operand(quantified.argument)
        tests = tuple(operate(quantified.operator, (argument, item), self.setting) for item in items)
        if not tests:
            return TRUE if quantified.all else FALSE
        return (comparison.both if quantified.all else comparison.either)(*tests, setting=self.setting)

    def _array(self, expression: s.Expression) -> tuple[Operand, ...]:
        match expression:
            case s.Array(items=items):
                return _as_texts(tuple(map(self.operand, items)), self.setting)
            case s.Cast(argument=s.Array(items=items), type=written) if self._has_enums(written):
                return tuple(map(self.operand, items))
            case s.Cast(argument=s.Array(items=items), type=written):
                element = _element(written)
                return tuple(cast(self.operand(item), element.sql, self.setting) for item in items)
            case s.Constant(kind="string", text=text):
                return tuple(null_of(UNKNOWN) if item is None else Literal(item) for item in arrays.items_of(text))
            case s.Cast(argument=s.Constant(kind="string", text=text), type=written):
                return self._items(text, written)
            case s.Cast(argument=s.Parameter() as parameter):
                return self._array(parameter)
            case s.Parameter(number=index) if 0 < index <= len(self.context.parameters):
                bound = self.context.parameters[index - 1]
                return () if bound is None else self._items(bound, self.context.parameter_types[index - 1])
        raise NotSupported("an array that is not constant is not supported over protected rows")

    def _items(self, text: str, written: str) -> tuple[Operand, ...]:
        """The items of an array's text; a label of an enum takes its type from what it is compared with."""
        if self._has_enums(written):
            return tuple(null_of(UNKNOWN) if item is None else Literal(item) for item in arrays.items_of(text))
        return literals(arrays.items_of(text), _element(written), self.setting)

    def _has_enums(self, written: str) -> bool:
        return written.endswith("[]") and self._find_enum(written.removesuffix("[]")) is not None

    def _find_enum(self, written: str) -> Type | None:
        """An enum of the database; the twin has checked which one it is."""
        return find_enum(written, self.context.catalog, self.context.search_path)


@lru_cache(maxsize=512)
def _whole(column: Column) -> Column:
    """A column of which nothing is declared."""
    return replace(column, declared=ANYTHING)


def _is_written(expression: s.Expression) -> bool:
    """Return whether an array stands in the text, or in a parameter."""
    while isinstance(expression, s.Cast):
        expression = expression.argument
    return isinstance(expression, s.Array | s.Constant | s.Parameter)


def _element(written: str) -> Type:
    sql_type = find_type(written.removesuffix("[]")) if written.endswith("[]") else None
    if sql_type is None:
        raise NotSupported(f"an array of type {written} is not supported over protected rows")
    return sql_type


def _as_texts(items: tuple[Operand, ...], setting: EvalContext) -> tuple[Operand, ...]:
    """ARRAY['a', 'b'] is of texts, beside a character(n) too, where the items of IN ('a', 'b') are what they meet."""
    if any(not isinstance(item, Literal) and not is_open(item) and item.type.kind != "text" for item in items):
        return items
    kinds = [item.type for item in items if not isinstance(item, Literal)]
    kind = find_common(kinds) or TEXT
    return tuple(typed(item, setting, kind) for item in items)


def _operands(operator: s.Operator) -> Sequence[s.Expression]:
    """Return what an operator stands between; of a long chain of ORs all alternatives, in the order of the text."""
    if operator.name != "or":
        return operator.arguments
    waiting: list[s.Expression] = [operator]
    expressions: list[s.Expression] = []
    while waiting:
        match waiting.pop():
            case s.Operator(name="or", arguments=arguments):
                waiting.extend(reversed(arguments))
            case arm:
                expressions.append(arm)
    return expressions if len(expressions) > _LONG_CHAIN else operator.arguments


def _constant(constant: s.Constant) -> Operand:
    match constant.kind:
        case "number":
            return number(constant.text)
        case "boolean":
            return TRUE if constant.text.lower() in ("true", "t") else FALSE
        case "null":
            return null_of(UNKNOWN)
        case "string":
            return Literal(constant.text)


def _refusal(expression: s.Expression) -> NotSupported | NotAllowed:
    match expression:
        case s.Star():
            hint = "Count rows with count(*); with an outer join, count a column, such as the key of its table."
            return NotAllowed("* is not allowed in this clause over protected rows", hint=hint)
        case s.Array():
            return NotSupported("arrays are not supported over protected rows", hint="Name their elements one by one.")
    return NotSupported("this expression is not supported over protected rows")
