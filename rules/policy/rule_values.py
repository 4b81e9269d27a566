"""Values of the rules file with forms of their own: amounts of ε and δ, pinned settings, laws of randomized columns.

Inner statements count and add up integers, so a pinned setting of the real database changes how long an answer takes
and not what it is. Whatever changes the meaning of a statement, or what a failure says, is pinned by the proxy itself.
Of columns whose values people have randomized themselves the file says by which law, so that estimates can undo it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rules.local.laws import MOST_EPSILON, Law, bit_law, check_sketch, hashed_bit, kary_law, sketch_law, unary_law
from rules.policy.logins import Model

_SWITCH: Final = re.compile(r"on|off")
_NUMBER: Final = re.compile(r"-?\d{1,12}(?:\.\d{1,9})?")
_SIZE: Final = re.compile(r"\d{1,12} ?(?:B|kB|MB|GB|TB)?")
_DURATION: Final = re.compile(r"\d{1,12} ?(?:us|ms|s|min|h|d)?")
_WORD: Final = re.compile(r"[a-z_-]{1,40}")

ALLOWED: Final[Mapping[str, re.Pattern[str]]] = {
    **dict.fromkeys(("work_mem", "effective_cache_size", "temp_buffers"), _SIZE),
    "hash_mem_multiplier": _NUMBER,
    **dict.fromkeys(("jit", "enable_partitionwise_join", "enable_partitionwise_aggregate", "geqo"), _SWITCH),
    **dict.fromkeys(("enable_hashjoin", "enable_mergejoin", "enable_nestloop", "enable_memoize"), _SWITCH),
    **dict.fromkeys(("random_page_cost", "seq_page_cost", "parallel_setup_cost", "parallel_tuple_cost"), _NUMBER),
    **dict.fromkeys(("jit_above_cost", "geqo_threshold", "from_collapse_limit", "join_collapse_limit"), _NUMBER),
    **dict.fromkeys(("max_parallel_workers_per_gather", "max_parallel_workers", "effective_io_concurrency"), _NUMBER),
    **dict.fromkeys(("citus.enable_repartition_joins", "citus.enable_fast_path_router_planner"), _SWITCH),
    "citus.enable_single_hash_repartition_joins": _SWITCH,
    **dict.fromkeys(("citus.max_adaptive_executor_pool_size", "citus.repartition_join_bucket_count_per_node"), _NUMBER),
    **dict.fromkeys(("citus.max_intermediate_result_size", "citus.max_cached_conns_per_worker"), _NUMBER),
    **dict.fromkeys(("citus.local_table_join_policy", "citus.task_assignment_policy"), _WORD),
    **dict.fromkeys(("citus.executor_slow_start_interval", "citus.node_connection_timeout"), _DURATION),
}


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise ValueError("must be a finite number")
    return value


def check_once(values: Iterable[object]) -> None:
    """No value of a list may be there twice: 1 and '1' are one label."""
    counts = Counter(map(str, values))
    if twice := sorted(text for text, count in counts.items() if count > 1):
        raise ValueError(f"a value is listed twice: {', '.join(twice)}")


Epsilon = Annotated[Decimal, Field(gt=0, le=1000), AfterValidator(_finite)]
Delta = Annotated[Decimal, Field(ge=0, lt=1), AfterValidator(_finite)]


class Randomized(Model):
    """The way people randomized answers: one of k values, a bit for each of k, a bit, a number, or a sketch."""

    by: Literal["k-ary", "unary", "bit", "mean", "sketch"]
    epsilon: Annotated[Decimal, Field(gt=0, le=MOST_EPSILON), AfterValidator(_finite)]
    values: Annotated[tuple[str | int, ...], Field(min_length=2)] | None = None
    lower: Annotated[Decimal, AfterValidator(_finite)] | None = None
    upper: Annotated[Decimal, AfterValidator(_finite)] | None = None
    hashes: int | None = None  # of a sketch: how many functions, on how many bits, by which key
    width: int | None = None
    key: str | None = None
    index: str | None = None  # the column that says by which function a word was hashed

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.values is not None) != (self.by in ("k-ary", "unary")):
            raise ValueError("k-ary and unary need values; the others cannot have them")
        if (self.lower is not None and self.upper is not None) != (self.by == "mean"):
            raise ValueError("mean needs lower and upper; the others cannot have them")
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise ValueError(f"lower ({self.lower}) must be below upper ({self.upper})")
        is_set = [parameter is not None for parameter in (self.hashes, self.width, self.key, self.index)]
        if not all(is_set) if self.by == "sketch" else any(is_set):
            raise ValueError("a sketch needs hashes, width, key and index; the others cannot have them")
        if self.hashes is not None and self.width is not None and self.key is not None:
            check_sketch(self.hashes, self.width, self.key)
        if self.values is not None:
            check_once(self.values)
        return self

    @property
    def law(self) -> Law:
        """The law of its reports, as the library draws them."""
        match self.by:
            case "k-ary":
                return kary_law(len(self.values or ()), self.epsilon)
            case "unary":
                return unary_law(self.epsilon)
            case "sketch":
                return sketch_law(self.width or 0, self.epsilon)
        return bit_law(self.epsilon)

    def places_of(self, word: str) -> tuple[int, ...]:
        """By hash function the bit of a word."""
        assert self.hashes is not None and self.width is not None and self.key is not None, "a sketch has them"
        key = bytes.fromhex(self.key)
        return tuple(hashed_bit(word, number, self.width, key) for number in range(self.hashes))


def _settings(written: object) -> object:
    """Names that are allowed, and values as SET takes them."""
    if not isinstance(written, dict):
        raise ValueError("must be a list of settings, as {citus.enable_repartition_joins: on}")
    return {str(name): _value(str(name), value) for name, value in written.items()}


def _value(name: str, value: object) -> str:
    form = ALLOWED.get(name)
    if form is None:
        close = get_close_matches(name, ALLOWED, n=1)
        hint = f'did you mean "{close[0]}"?' if close else "docs/rules-file.md lists those that may"
        raise ValueError(f"{name} cannot be set here: {hint}")
    if isinstance(value, bool):
        text = "on" if value else "off"
    else:
        text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    if form.fullmatch(text) is None:
        raise ValueError(f'"{text}" is not a value of {name}')
    return text


EngineSettings = Annotated[dict[str, str], BeforeValidator(_settings)]
