"""The rules file as a model: strict, frozen, closed unless opened."""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from rules.catalog import TableName

Bound = int | Decimal | date | datetime
Value = bool | int | Decimal | date | str

VERIFIER = re.compile(r"SCRAM-SHA-256\$[1-9]\d{3,6}:[A-Za-z0-9+/]+=*\$[A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=")
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
SECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "second", "seconds"), 1),
    **dict.fromkeys(("min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("w", "week", "weeks"), 604_800),
}


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _duration(value: object) -> object:
    """Durations are written as people say them; 0 stands for none."""
    if value == 0 or isinstance(value, timedelta):
        return value or timedelta(0)
    found = DURATION.fullmatch(str(value).strip())
    if found is None or found[2] not in SECONDS:
        raise ValueError('write a duration as a number and a unit: "1 day", "30 min", "100 ms"')
    return timedelta(seconds=float(found[1]) * SECONDS[found[2]])


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise ValueError("must be a finite number")
    return value


Duration = Annotated[timedelta, BeforeValidator(_duration)]
Epsilon = Annotated[Decimal, Field(gt=0, le=1000), AfterValidator(_finite)]
Delta = Annotated[Decimal, Field(ge=0, lt=1), AfterValidator(_finite)]


@dataclass(frozen=True, slots=True)
class UnitStep:
    """How a row names its unit: by its own column, or through a foreign key to a row of another protected table."""

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
    hidden: bool = False
    sum_per_unit: Literal["auto"] | None = None  # how much of each unit's sums counts is chosen privately

    @model_validator(mode="after")
    def _one_of_a_kind(self) -> Self:
        if (self.lower is None) != (self.upper is None):
            raise ValueError("lower and upper belong together")
        if self.lower is not None and self.upper is not None:
            check_order(self.lower, self.upper)
        if self.values is not None and self.lower is not None:
            raise ValueError("give values, or lower and upper, not both")
        if self.values is not None and len(set(map(str, self.values))) < len(self.values):
            raise ValueError("a value is listed twice")
        if self.hidden and (self.values is not None or self.lower is not None or self.sum_per_unit is not None):
            raise ValueError("a hidden column has no values and no bounds")
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
    view: bool = False  # read as the query that defines it: the rules of its tables hold
    unit: str | None = None  # "customer_id", or "order_id -> orders.id" through a foreign key
    rows_per_unit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    rows_auto: bool = False  # "rows_per_unit: auto up to 200": how many count is chosen privately for each query
    sum_per_unit: Literal["auto"] | None = None  # of all its columns
    columns: dict[str, ColumnRules] = {}

    @model_validator(mode="after")
    def _public_or_protected(self) -> Self:
        if self.public and (self.unit or self.rows_per_unit or self.sum_per_unit):
            raise ValueError("a public table has no unit, no rows_per_unit and no sum_per_unit")
        if self.view and self.model_fields_set != {"view"}:
            raise ValueError("a view has no rules of its own: those of its tables hold")
        if self.unit is not None:
            self.unit_step()
        return self

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
    """What all analysts together may learn in one period."""

    epsilon: Epsilon
    delta: Delta = Decimal(0)
    per: Literal["ever", "day", "week", "month"] = "ever"
    time_zone: str = "UTC"

    @model_validator(mode="after")
    def _known_zone(self) -> Self:
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f'"{self.time_zone}" is not a time zone; write one as "Europe/Berlin"') from error
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


class Analyst(Model):
    """Someone who may ask."""

    password: str  # a SCRAM-SHA-256 verifier as PostgreSQL stores it, never the password itself
    epsilon: Epsilon | None = None
    delta: Delta | None = None

    @model_validator(mode="after")
    def _a_verifier(self) -> Self:
        if VERIFIER.fullmatch(self.password) is None:
            raise ValueError('password takes a SCRAM-SHA-256 verifier, as "noisegate password" makes it')
        return self


class Policy(Model):
    """The whole file. Table names are "name" (in schema public) or "schema.name"."""

    database: str
    unit: str  # "customers.id", or "row"
    tables: Annotated[dict[str, TableRules], Field(min_length=1)]
    budget: Budget
    defaults: Defaults = Defaults()
    analysts: Annotated[dict[str, Analyst], Field(min_length=1)]
    group_size: Annotated[int, Field(ge=1, le=1000)] = 1
    noise: Literal["laplace", "gaussian"] = "laplace"
    groups_limit: Annotated[int, Field(ge=1, le=100_000)] = 10_000
    fresh_for: Duration = timedelta(days=1)
    previews: Literal["refuse", "empty", "synthetic"] = "refuse"
    pad_to: Duration | None = None
    max_faults: Annotated[int, Field(ge=0)] = 3

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        names = [table_name(text) for text in self.tables]
        twice = {str(name) for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"tables named twice: {', '.join(sorted(twice))}")
        return self

    def find_table(self, name: TableName) -> TableRules | None:
        """The rules of a table; None: it does not exist for analysts."""
        return self.tables.get(name.name) if name.schema == "public" and name.name in self.tables else self.tables.get(
            f"{name.schema}.{name.name}"
        )  # fmt: skip

    def is_protected(self, name: TableName) -> bool:
        rules = self.find_table(name)
        return rules is not None and not rules.public

    def statement_delta(self) -> Decimal:
        """The share of δ that one statement with thresholds takes: half the budget's δ is kept for composition."""
        if self.defaults.delta is not None:
            return self.defaults.delta
        return self.budget.delta / 2000
