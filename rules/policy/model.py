"""The rules file as a model: strict, frozen, closed unless opened."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Final, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BeforeValidator, Field, model_validator

from rules.catalog import Catalog, Column, TableName
from rules.frozen import frozen
from rules.policy.logins import Duration, LoginRules, Logins, Model, parse_duration
from rules.policy.rule_values import Delta, EngineSettings, Epsilon, Randomized, check_once
from rules.policy.synopses import CubeRules, Synopsis, SynopsisRules

Bound = int | Decimal | date | datetime
Value = bool | int | Decimal | date | str
NoiseKind = Literal["laplace", "gaussian"]  # the laws of `mechanisms.additive`
PURE_NOISE: Final = frozenset[NoiseKind](("laplace",))  # those whose draws have a pure ε
Previews = Literal["refuse", "empty", "synthetic", "synopsis"]


def _padding(value: object) -> object:
    return value if value is None or value == "full" else parse_duration(value)


class MistakeAt(ValueError):
    """A mistake that shows when the whole file is read, and the place where it stands."""

    def __init__(self, path: tuple[str, ...], message: str) -> None:
        super().__init__(message)
        self.path = path


@frozen
class UnitStep:
    """Say how a row names its unit: by its own column, or through a foreign key to a row of another protected table."""

    column: str
    target: TableName | None = None
    target_column: str = ""


def table_name(text: str) -> TableName:
    """A table as the rules file names it: "orders" is public.orders."""
    schema, _, name = text.rpartition(".")
    return TableName(schema or "public", name)


class ColumnRules(Model):
    """One column of a protected table: its range or its values, if it is not hidden."""

    lower: Bound | None = None
    upper: Bound | None = None
    values: Annotated[tuple[Value, ...], Field(min_length=1)] | None = None
    nullable: bool = True  # false: no row lacks a value, so there is no group of NULL
    other: bool = False  # values that are not listed or between the bounds make one more group
    hidden: bool = False
    sum_per_unit: Literal["auto", "off"] | None = None  # whether how much of each unit's sums counts is chosen
    randomized: Randomized | None = None  # people changed their answers by chance before they gave them
    bounds: Literal["auto"] | None = None  # lower and upper are those of a private look, which the ledger keeps

    @model_validator(mode="after")
    def _one_of_a_kind(self) -> Self:
        if self.randomized is not None and not self.model_fields_set <= {"randomized", "nullable"}:
            raise ValueError("values and bounds of a randomized column belong inside randomized")
        if self.bounds is not None and (self.lower is not None or self.values is not None or self.hidden):
            raise ValueError("bounds: auto cannot be combined with lower, upper, values or hidden")
        if (self.lower is None) != (self.upper is None):
            raise ValueError("lower and upper must be given together")
        if self.lower is not None and self.upper is not None:
            check_order(self.lower, self.upper)
        if self.values is not None and self.lower is not None:
            raise ValueError("give values, or lower and upper, not both")
        if self.values is not None:
            check_once(self.values)
        if self.hidden and (self.values is not None or self.lower is not None or self.sum_per_unit is not None):
            raise ValueError("a hidden column cannot have values or bounds")
        if self.other and self.values is None and self.lower is None and self.bounds is None:
            raise ValueError("other needs values, or lower and upper")
        if self.hidden and not self.nullable:
            raise ValueError("a hidden column cannot have nullable")
        return self


def check_order(lower: Bound, upper: Bound) -> None:
    """Bounds are of one kind, finite, and in order."""
    if isinstance(lower, int | Decimal) and isinstance(upper, int | Decimal):
        if not (Decimal(lower).is_finite() and Decimal(upper).is_finite()):
            raise ValueError("bounds must be finite numbers")
        in_order = lower <= upper
    elif isinstance(lower, date) and isinstance(upper, date):
        in_order = str(lower) <= str(upper)
    else:
        raise ValueError(f"lower ({lower}) and upper ({upper}) are of different kinds")
    if not in_order:
        raise ValueError(f"lower ({lower}) is above upper ({upper})")


class TableRules(Model):
    """One table: public as a whole, or protected with the column that says whose row it is. Or a view of such."""

    public: bool = False
    because: Annotated[str, Field(min_length=8)] | None = None  # why it is public although it may tell of people
    view: bool = False  # read as the query that defines it: the rules of its tables hold
    unit: str | None = None  # "customer_id", or "order_id -> orders.id" through a foreign key
    rows_per_unit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    rows_auto: bool = False  # "rows_per_unit: auto up to 200": how many count is chosen privately for each query
    sum_per_unit: Literal["auto", "off"] | None = None  # of all its columns
    foreign: Literal["trusted"] | None = None  # all its rows on other servers can always be read
    columns: dict[str, ColumnRules] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _public_or_protected(self) -> Self:
        if self.public and (self.unit or self.rows_per_unit or self.sum_per_unit):
            raise ValueError("a public table cannot have unit, rows_per_unit or sum_per_unit")
        if self.because is not None and not self.public:
            raise ValueError('because belongs to public: write public: {because: "…"}')
        if self.view and self.model_fields_set != {"view"}:
            raise ValueError("a view cannot have rules of its own: the rules of its tables apply")
        if self.unit is not None:
            self.unit_step()
        return self

    def hides(self, column: Column) -> bool:
        """Tell whether a column does not exist for analysts: by its rules, or since reading it may fail on some row."""
        column_rules = self.columns.get(column.name)
        return (column_rules is not None and column_rules.hidden) or (bool(column.unreadable) and not self.public)

    def unit_step(self) -> UnitStep:
        """The first step from a row to its unit; the target table's own rules say the next."""
        column, *targets = (part.strip() for part in (self.unit or "").split("->"))
        if not targets:
            return UnitStep(column)
        table, _, target_column = targets[0].rpartition(".")
        if len(targets) > 1 or not column or not table or not target_column:
            raise ValueError('write a unit as "customer_id", or as "order_id -> orders.id" through one foreign key')
        return UnitStep(column, table_name(table), target_column)


class Budget(Model):
    """Limit what all analysts together may learn in one period."""

    epsilon: Epsilon
    delta: Delta = Decimal(0)
    per: Literal["ever", "day", "week", "month"] = "ever"
    time_zone: str = "UTC"

    @model_validator(mode="after")
    def _known_zone(self) -> Self:
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # a folder of zones, or no name of a file
            words = f'"{self.time_zone[:60]}" is not a time zone; use a name such as "Europe/Berlin"'
            raise ValueError(words) from error
        return self


class Defaults(Model):
    """Per statement."""

    epsilon: Epsilon = Decimal("0.1")
    max_epsilon: Epsilon = Decimal(1)
    min_epsilon: Annotated[Epsilon, Field(ge=Decimal("0.000001"))] | None = None
    delta: Delta | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.epsilon > self.max_epsilon:
            raise ValueError(f"epsilon ({self.epsilon}) is above max_epsilon ({self.max_epsilon})")
        if self.min_epsilon is not None and self.min_epsilon > self.epsilon:
            raise ValueError(f"min_epsilon ({self.min_epsilon}) is above epsilon ({self.epsilon})")
        return self

    @property
    def least_epsilon(self) -> Decimal:
        """The least that may be SET. A thousand times the noise of the most tells nothing that is worth an entry."""
        return min(self.epsilon, self.max_epsilon / 1000) if self.min_epsilon is None else self.min_epsilon


class Analyst(LoginRules):
    """Someone who may ask."""

    role: str | None = None
    epsilon: Epsilon | None = None
    delta: Delta | None = None
    previews: Previews | None = None  # None: as the role, or the rules for all, say


class Role(Model):
    """Analysts who have a budget together, within that of all."""

    epsilon: Epsilon
    delta: Delta | None = None
    per_analyst: Epsilon | None = None  # the ε of each who has none of their own; None: the whole
    previews: Previews | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.per_analyst is not None and self.per_analyst > self.epsilon:
            raise ValueError(f"per_analyst ({self.per_analyst}) is above epsilon ({self.epsilon})")
        return self


class Operator(LoginRules):
    """Someone who may use the console, and asks nothing."""


class Policy(Model):
    """The whole file. Table names are "name" (in schema public) or "schema.name"."""

    database: str
    public_reader: str | None = None  # a login there that reads the public tables and nothing else
    unit: str  # "customers.id", or "row"
    tables: Annotated[dict[str, TableRules], Field(min_length=1)]
    budget: Budget
    defaults: Defaults = Defaults()
    analysts: Annotated[dict[str, Analyst], Field(min_length=1)]
    roles: dict[str, Role] = Field(default_factory=dict)
    operators: dict[str, Operator] = Field(default_factory=dict)
    logins: Logins | None = None
    group_size: Annotated[int, Field(ge=1, le=1000)] = 1
    noise: NoiseKind = "laplace"
    min_units: Annotated[int, Field(ge=2, le=1_000_000)] | None = None  # no number is shown about fewer
    groups_limit: Annotated[int, Field(ge=1, le=100_000)] = 10_000
    fresh_for: Duration = timedelta(days=1)
    choice_for: Duration = timedelta(days=30)  # how long a bound that was chosen serves equal questions
    synopses: dict[str, Synopsis] = Field(default_factory=dict)  # schemas of synthetic rows, and cubes
    previews: Previews = "refuse"
    empty_groups: Literal["hide", "show"] = "hide"  # listed groups whose numbers could be noise alone
    engine_settings: EngineSettings = Field(default_factory=dict)
    pad_to: Annotated[timedelta | Literal["full"] | None, BeforeValidator(_padding)] = None

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        names = [table_name(text) for text in self.tables]
        twice = {str(name) for name in names if names.count(name) > 1}
        if twice:
            second = next(text for text in reversed(self.tables) if str(table_name(text)) in twice)
            raise MistakeAt(("tables", second), f"tables named twice: {', '.join(sorted(twice))}")
        return self

    @model_validator(mode="after")
    def _one_role_each(self) -> Self:
        both = sorted(self.operators.keys() & self.analysts.keys())
        if both:
            words = f"a name cannot be both an operator and an analyst: {', '.join(both)}"
            raise MistakeAt(("operators", both[0]), words)
        return self

    @model_validator(mode="after")
    def _known_roles(self) -> Self:
        unknown = sorted(name for name, analyst in self.analysts.items() if analyst.role not in {None, *self.roles})
        if unknown:
            wanted = self.analysts[unknown[0]].role
            words = f'the role "{wanted}" of {unknown[0]} is not in roles'
            raise MistakeAt(("analysts", unknown[0], "role"), words)
        return self

    @property
    def is_pure(self) -> bool:
        """Return whether every answer costs a pure ε; other noise is paid as ρ alone."""
        return self.noise in PURE_NOISE

    @property
    def accounts(self) -> dict[str, LoginRules]:
        """Everybody who may log in."""
        return {**self.analysts, **self.operators}

    def without_secrets(self) -> "Policy":
        """Leave out connection strings and verifiers, which planning does not need."""
        none = dict.fromkeys(LoginRules.model_fields)
        analysts = {name: analyst.model_copy(update=none) for name, analyst in self.analysts.items()}
        reader = None if self.public_reader is None else ""
        update = {"database": "", "public_reader": reader, "analysts": analysts, "operators": {}, "logins": None}
        return self.model_copy(update=update)

    def find_table(self, name: TableName) -> TableRules | None:
        """The rules of a table; None: it does not exist for analysts."""
        return self.tables.get(name.name) if name.schema == "public" and name.name in self.tables else self.tables.get(
            f"{name.schema}.{name.name}"
        )  # fmt: skip

    def find_unit_key(self, catalog: Catalog) -> Column | None:
        """The column that tells units apart; None where rows are units, or where the catalog does not have it."""
        text, _, name = self.unit.rpartition(".")
        table = catalog.find_table(table_name(text)) if text else None
        return None if table is None else table.find_column(name)

    def is_protected(self, name: TableName) -> bool:
        rules = self.find_table(name)
        return rules is not None and not rules.public

    @property
    def schemas(self) -> dict[str, SynopsisRules]:
        """The synopses that are schemas of synthetic rows."""
        return {name: rules for name, rules in self.synopses.items() if isinstance(rules, SynopsisRules)}

    @property
    def cubes(self) -> dict[str, CubeRules]:
        """The synopses that are cubes."""
        return {name: rules for name, rules in self.synopses.items() if isinstance(rules, CubeRules)}

    @property
    def auto_columns(self) -> tuple[tuple[TableName, str], ...]:
        """The columns whose bounds a private look finds."""
        return tuple(
            (table_name(text), name)
            for text, rules in self.tables.items()
            for name, column in rules.columns.items()
            if column.bounds is not None
        )

    def with_bounds(self, bounds: Mapping[tuple[TableName, str], tuple[Bound, Bound]]) -> "Policy":
        """The policy with what looks have found in place of bounds: auto."""
        tables = {
            text: rules.model_copy(
                update={
                    "columns": {
                        name: column.model_copy(update={"bounds": None, "lower": ends[0], "upper": ends[1]})
                        if column.bounds is not None and (ends := bounds.get((table_name(text), name)))
                        else column
                        for name, column in rules.columns.items()
                    }
                }
            )
            for text, rules in self.tables.items()
        }
        return self.model_copy(update={"tables": tables}) if bounds else self

    def previews_of(self, name: str) -> Previews:
        """Find what an analyst's previews get, unless the session says: by those of the analyst, the role, or all."""
        analyst = self.analysts.get(name)
        role = None if analyst is None or analyst.role is None else self.roles[analyst.role]
        choices = (None if scope is None else scope.previews for scope in (analyst, role))
        return next((choice for choice in choices if choice is not None), self.previews)

    def statement_delta(self) -> Decimal:
        """The share of δ that one statement with thresholds takes: half the budget's δ is kept for composition."""
        if self.defaults.delta is not None:
            return self.defaults.delta
        return self.budget.delta / 2000
