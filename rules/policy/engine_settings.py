"""Settings of the real database that the rules file may pin: how inner statements are planned, never what they mean.

Inner statements count and add up integers, so a plan changes how long an answer takes and not what it is. Whatever
changes the meaning of a statement, or what a failure says, is pinned by the proxy itself.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated, Final

from pydantic import BeforeValidator

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
