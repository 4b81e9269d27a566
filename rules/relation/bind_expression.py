"""Expressions of the analyst's text as typed expressions of the registry."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from rules.refusal import NotAllowed, NotSupported, Refusal
from rules.relation import members
from rules.relation.expression import FALSE, TRUE, Constant, Expression, Literal, Operand, all_of, null_of
from rules.relation.functions import arrays, comparison, conditional
from rules.relation.functions.cast import cast
from rules.relation.functions.coerce import literal, literals, number, typed
from rules.relation.functions.fold import folded
from rules.relation.functions.guard import Setting
from rules.relation.functions.registry import call, operate
from rules.relation.lookup import check_alone, links_of, of_nothing, outside_of
from rules.relation.released import Links
from rules.relation.scope import World
from rules.relation.types import UNKNOWN, Type, find_type
from rules.relation.walk_syntax import word_of
from rules.sql import syntax as s
from rules.sql.aggregate_names import AGGREGATES

# What an expression means by itself: a column, a grouping key, an aggregate. None: look into it.
Leaf = Callable[[s.Expression], Operand | None]

_MOST_COMPARED = 100  # items of an array that are compared one by one


@dataclass(frozen=True, slots=True)
class Binding:
    """How the names of one place are read."""

    leaf: Leaf
    world: World
    setting: Setting

    def bind(self, given: s.Expression) -> Expression:
        """A whole expression; an open literal in the end is a text."""
        return typed(self.operand(given), self.setting)

    def condition(self, given: s.Expression) -> Expression:
        return comparison.boolean(self.operand(given), self.setting)

    def operand(self, given: s.Expression) -> Operand:
        try:
            found = self.leaf(given)
            return folded(self._computed(given), self.setting) if found is None else found
        except Refusal as refusal:
            refusal.about = refusal.about or word_of(given)
            raise

    def _computed(self, given: s.Expression) -> Operand:
        match given:
            case s.Constant():
                return _constant(given)
            case s.Parameter(number=index):
                return self._parameter(index)
            case s.Cast(argument=argument, type=written):
                return self._cast(argument, written)
            case s.Operator(name="subscript", arguments=(array, place)):
                return self._item(array, place)
            case s.Operator(name=name, arguments=(left, right)) if name in arrays.SIGNS:
                return self._sets(name, left, right)
            case s.Operator(name=name, arguments=arguments):
                return operate(name, tuple(map(self.operand, arguments)), self.setting)
            case s.Call():
                return self._call(given)
            case s.Case():
                return self._case(given)
            case s.InList(argument=argument, items=items, negated=negated):
                return self._in(argument, items, negated=negated)
            case s.Quantified():
                return self._quantified(given)
            case s.ScalarQuery() | s.Exists() | s.InQuery():
                return self._answered(given)
        raise _refusal(given)

    def _item(self, array: s.Expression, place: s.Expression) -> Expression:
        """array[n], and the pieces of a text that are made as an array."""
        match array:
            case s.Call(name="string_to_array", arguments=(_, _) as given):
                return arrays.piece(tuple(map(self.operand, given)), self.operand(place), self.setting)
            case s.Call(name="regexp_match", arguments=(_, _) as given) if place == s.Constant("number", "1"):
                return call("substring", tuple(map(self.operand, given)), self.setting)
        found = self.operand(array)
        if isinstance(found, Literal) or arrays.element_of(found) is None:
            raise NotSupported("this subscript is not supported over protected rows")
        return arrays.item(found, self.operand(place), self.setting)

    def _sets(self, name: str, left: s.Expression, right: s.Expression) -> Expression:
        """a @> b, a <@ b and a && b, where one may be written as a constant."""
        sides = [None if _is_written(each) else self.operand(each) for each in (left, right)]
        element = next((found for each in sides if each is not None and (found := arrays.element_of(each))), None)
        if element is None:  # documents
            return operate(name, (self._document(left), self._document(right)), self.setting)
        one, other = (
            arrays.listed(self._array(written), element, self.setting) if side is None else side
            for side, written in zip(sides, (left, right), strict=True)
        )
        return operate(name, (one, other), self.setting)

    def _document(self, given: s.Expression) -> Operand:
        match given:
            case s.Cast(argument=s.Constant(kind="string", text=text), type="jsonb"):
                return Literal(text)
        return self.operand(given)

    def _parameter(self, index: int) -> Operand:
        if not 0 < index <= len(self.world.parameters):
            raise NotSupported(f"the parameter ${index} has no value here")
        written, text = self.world.parameter_types[index - 1], self.world.parameters[index - 1]
        if self._is_enum(written):
            return null_of(UNKNOWN) if text is None else Literal(text)
        given = find_type(written)
        if given is None or given.kind == "other":
            raise NotSupported(f"a parameter of type {written} is not supported over protected rows")
        return literal(text, given, self.setting)

    def _cast(self, argument: s.Expression, written: str) -> Operand:
        given = self.operand(argument)
        if isinstance(given, Literal) and self._is_enum(written):
            return given  # a label takes its type from what it is compared with
        return cast(given, written, self.setting)

    def _call(self, given: s.Call) -> Expression:
        if given.over is not None:
            hint = "A window over the answer works, as sum(count(*)) OVER () does; over single rows it does not."
            raise NotSupported(f"the window function {given.name} is not supported over protected rows", hint=hint)
        if given.name in AGGREGATES or given.star or given.distinct or given.filter or given.within_group:
            raise NotSupported(f"the aggregate {given.name} cannot stand here")
        if given.schema is not None:
            raise NotSupported(f'the function "{given.schema}.{given.name}" is not supported over protected rows')
        if given.name == "width_bucket" and len(given.arguments) == 2:
            return self._bucket(*given.arguments)
        return call(given.name, tuple(map(self.operand, given.arguments)), self.setting)

    def _bucket(self, argument: s.Expression, array: s.Expression) -> Expression:
        """width_bucket(x, array of constants in their order): how many of them are not above x."""
        given, bounds = self.operand(argument), self._array(array)
        values = [each.value for each in bounds if isinstance(each, Constant) and isinstance(each.value, Fraction)]
        if not 0 < len(values) == len(bounds) <= _MOST_COMPARED or values != sorted(values):
            raise NotSupported(f"width_bucket needs 1 to {_MOST_COMPARED} constant numbers in their order")
        below = ((operate("<", (given, bound), self.setting), number(str(at))) for at, bound in enumerate(bounds))
        is_null = operate("is null", (given,), self.setting)
        branches = ((is_null, null_of(UNKNOWN)), *below)
        return conditional.case(branches, number(str(len(bounds))), self.setting)

    def _case(self, given: s.Case) -> Expression:
        branches = tuple((self.operand(test), self.operand(result)) for test, result in given.branches)
        default = null_of(UNKNOWN) if given.default is None else self.operand(given.default)
        if given.operand is None:
            return conditional.case(branches, default, self.setting)
        return conditional.simple_case(self.operand(given.operand), branches, default, self.setting)

    def _answered(self, given: s.ScalarQuery | s.Exists | s.InQuery) -> Operand:
        """A subquery over answers, whose rows are known before protected ones are asked for."""
        match given:
            case s.ScalarQuery(query=query):
                links = links_of(query, self.world)
                return self._lookup(query, links) if links else self.world.released_value(query, "value")
            case s.Exists(query=query):
                check_alone(query, self.world)
                return self.world.released_value(query, "exists")
            case s.InQuery(query=query):
                check_alone(query, self.world)
                rows = self.world.released_list(query)
                return members.among(tuple(map(self.operand, members.written(given))), given, rows, self.setting)

    def _lookup(self, query: s.Query, links: Links) -> Operand:
        """The answer for what the row around the subquery has."""
        outside = tuple(map(self.operand, outside_of(links)))
        rows = self.world.released_rows(query, links)
        branches = []
        for *keys, answer in rows:
            pairs = zip(outside, keys, strict=True)
            tests = tuple(comparison.compare("=", one, other, self.setting) for one, other in pairs)
            branches.append((all_of(tests), answer))
        return conditional.case(tuple(branches), self.operand(of_nothing(query)), self.setting)

    def _in(self, argument: s.Expression, items: tuple[s.Expression, ...], *, negated: bool) -> Expression:
        found = tuple(map(self.operand, items))
        return comparison.in_list(self.operand(argument), found, self.setting, negated=negated)

    def _quantified(self, given: s.Quantified) -> Expression:
        """x = ANY (array of constants) is IN, x <> ALL (array) is NOT IN; with other operators it is OR and AND."""
        if not _is_written(given.array):
            array = self.bind(given.array)
            if given.operator in comparison.COMPARISONS and arrays.element_of(array) is not None:
                operand, sign = self.operand(given.argument), given.operator
                return arrays.compared(operand, sign, array, self.setting, every=given.all)
        items = self._array(given.array)
        if (given.operator, given.all) in (("=", False), ("<>", True)):
            return comparison.in_list(self.operand(given.argument), items, self.setting, negated=given.all)
        if len(items) > _MOST_COMPARED:
            raise NotSupported(f"{given.operator} with more than {_MOST_COMPARED} items is not supported")
        argument = self.operand(given.argument)
        tests = tuple(operate(given.operator, (argument, item), self.setting) for item in items)
        if not tests:
            return TRUE if given.all else FALSE
        return (comparison.both if given.all else comparison.either)(*tests, setting=self.setting)

    def _array(self, given: s.Expression) -> tuple[Operand, ...]:
        match given:
            case s.Array(items=items):
                return tuple(map(self.operand, items))
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
            case s.Parameter(number=index) if 0 < index <= len(self.world.parameters):
                bound = self.world.parameters[index - 1]
                return () if bound is None else self._items(bound, self.world.parameter_types[index - 1])
        raise NotSupported("an array that is no constant is not supported over protected rows")

    def _items(self, text: str, written: str) -> tuple[Operand, ...]:
        """The items of an array's text; a label of an enum takes its type from what it is compared with."""
        if self._has_enums(written):
            return tuple(null_of(UNKNOWN) if item is None else Literal(item) for item in arrays.items_of(text))
        return literals(arrays.items_of(text), _element(written), self.setting)

    def _has_enums(self, written: str) -> bool:
        return written.endswith("[]") and self._is_enum(written.removesuffix("[]"))

    def _is_enum(self, written: str) -> bool:
        """Whether a type is an enum of the database; the twin has checked which one it is."""
        name = written.replace('"', "")
        known = {
            text
            for each in self.world.catalog.enums
            for text in (each.name.name, f"{each.name.schema}.{each.name.name}")
        }
        return name in known


def _is_written(given: s.Expression) -> bool:
    """Whether an array stands in the text, or in a parameter."""
    while isinstance(given, s.Cast):
        given = given.argument
    return isinstance(given, s.Array | s.Constant | s.Parameter)


def _element(written: str) -> Type:
    found = find_type(written.removesuffix("[]")) if written.endswith("[]") else None
    if found is None:
        raise NotSupported(f"an array of type {written} is not supported over protected rows")
    return found


def _constant(given: s.Constant) -> Operand:
    match given.kind:
        case "number":
            return number(given.text)
        case "boolean":
            return TRUE if given.text.lower() in ("true", "t") else FALSE
        case "null":
            return null_of(UNKNOWN)
        case "string":
            return Literal(given.text)


def _refusal(given: s.Expression) -> NotSupported | NotAllowed:
    match given:
        case s.Star():
            return NotAllowed("* cannot stand here over protected rows")
        case s.Array():
            return NotSupported("arrays are not supported over protected rows")
    return NotSupported("this expression is not supported over protected rows")
