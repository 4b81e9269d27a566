"""The rules file as a model: strict, frozen, closed unless opened."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Bound = int | Decimal | date | datetime
Value = bool | int | Decimal | date | str


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class ColumnRules(Model):
    """One column of a protected table."""

    lower: Bound | None = None
    upper: Bound | None = None
    values: tuple[Value, ...] | None = None
    hidden: bool = False


class TableRules(Model):
    """One table: public as a whole, or protected with the column that says whose row it is."""

    public: bool = False
    unit: str | None = None  # "customer_id", or "order_id -> orders.id" through foreign keys
    rows_per_unit: Annotated[int, Field(ge=1)] | None = None
    columns: dict[str, ColumnRules] = {}


class Budget(Model):
    epsilon: Decimal
    delta: Decimal = Decimal(0)
    per: Literal["ever", "day", "week", "month"] = "ever"
    time_zone: str = "UTC"


class Defaults(Model):
    """Per statement."""

    epsilon: Decimal = Decimal("0.1")
    max_epsilon: Decimal = Decimal(1)
    delta: Decimal | None = None


class Analyst(Model):
    password: str  # a SCRAM-SHA-256 verifier as PostgreSQL stores it
    epsilon: Decimal | None = None
    delta: Decimal | None = None


class Policy(Model):
    """The whole file. Table names are "name" (in schema public) or "schema.name"."""

    database: str
    unit: str
    tables: dict[str, TableRules]
    budget: Budget
    defaults: Defaults = Defaults()
    analysts: dict[str, Analyst]
    group_size: Annotated[int, Field(ge=1)] = 1
    groups_limit: Annotated[int, Field(ge=1)] = 10_000
    fresh_for: timedelta = timedelta(days=1)
    previews: Literal["refuse", "empty", "synthetic"] = "refuse"
    pad_to: timedelta | None = None
    max_faults: Annotated[int, Field(ge=0)] = 3
