"""Sources with windows within a unit: what the property tests of the planner draw besides tables and joins."""

from hypothesis import strategies as st

Source = tuple[str, str, str]  # the text, the tables in it, and how the unit is called

# Functions by what they say, and the frames under which PostgreSQL leaves nothing open.
_PLAIN = (
    "row_number()", "rank()", "dense_rank()", "ntile(2)", "percent_rank()", "cume_dist()", "lag(cost)",
    "lag(score, 2)", "lead(count, 1, 0)", "lead(big, 1, cost)", "lead(score, 1, cost)", "first_value(cost)",
)  # fmt: skip
_FRAMED = (
    "sum(count)", "sum(cost)", "avg(cost)", "min(cost)", "max(count)", "count(*)", "count(score)", "stddev_pop(count)",
    "count(*) FILTER (WHERE kind = 'a')", "sum(cost) FILTER (WHERE count > 0)",
)  # fmt: skip
_NUMBERS = (
    *((text, "") for text in _PLAIN),
    *((text, "frame") for text in _FRAMED),
    ("first_value(count)", "frame"),
    ("last_value(count)", "rows"),
    ("nth_value(cost, 2)", "rows"),
)
# The same over any number, and whether a frame may be written.
FUNCTIONS = (
    *(("row_number()", False),) * 4, ("rank()", False), ("dense_rank()", False), ("ntile(2)", False),
    ("percent_rank()", False), ("cume_dist()", False), ("lag({})", False), ("lead({}, 2)", False),
    ("lag({}, 1, 0)", False), ("first_value({})", True), ("last_value({})", True), ("nth_value({}, 2)", True),
    ("sum({})", True), ("avg({})", True), ("min({})", True), ("max({})", True), ("count(*)", True),
    ("count({})", True), ("count(*) FILTER (WHERE {} > 0)", True), ("stddev_pop({})", True),
)  # fmt: skip
_MOMENTS = (
    *((each, "") for each in ("lag(day)", "lead(at, 2)", "lag(day, 1, at)", "first_value(day)")),
    ("max(at)", "frame"),
    ("min(day)", ""),
)
_TEXTS = (("lag(kind)", ""), ("lead(kind, 1, 'a')", ""), ("first_value(kind)", ""), ("max(kind)", ""))
_FRAMES = (
    "", "ROWS 1 PRECEDING", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING", "ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES", "RANGE UNBOUNDED PRECEDING EXCLUDE GROUP",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW", "RANGE UNBOUNDED PRECEDING EXCLUDE CURRENT ROW",
)  # fmt: skip
FRAMES = (
    *_FRAMES, "", "RANGE 1 PRECEDING", "RANGE BETWEEN 0.5 PRECEDING AND 2 FOLLOWING EXCLUDE TIES",
    "RANGE BETWEEN '1 day' PRECEDING AND '1 month' FOLLOWING", "RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "GROUPS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "GROUPS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING", "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
)  # fmt: skip
_ROWS = ("ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
# What these orders, of one column, may have before and behind a row.
_NEAR = (
    *((order, frame) for order in ("day", "at DESC", "date_trunc('month', at)") for frame in (
        "RANGE '1 day' PRECEDING", "RANGE BETWEEN '1 month 2 days' PRECEDING AND '36 hours' FOLLOWING EXCLUDE TIES",
        "RANGE BETWEEN UNBOUNDED PRECEDING AND '1 year' PRECEDING")),
    *((order, frame) for order in ("cost", "count DESC NULLS LAST", "score NULLS FIRST") for frame in (
        "RANGE 1 PRECEDING", "RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
        "RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING")),
)  # fmt: skip
_PARTITIONS = ("person_id", "person_id, kind", "person_id, date_trunc('month', at)", "person_id, count > 0")
_ORDERS = ("day", "at DESC", "kind", "cost", "count DESC NULLS LAST", "date_trunc('month', at)", "score NULLS FIRST")

_GROUPED = """(SELECT person_id, kind, count(*) AS n, lag(count(*)) OVER (PARTITION BY person_id ORDER BY kind) AS m,
    sum(sum(cost)) OVER (PARTITION BY person_id ORDER BY kind) AS s FROM visits GROUP BY person_id, kind) AS u"""
_FIRST = "(SELECT DISTINCT ON (person_id) * FROM visits ORDER BY person_id, {}, id) AS v"
_FEW = "(SELECT *, row_number() OVER (PARTITION BY person_id ORDER BY {}, id) AS number FROM visits) AS v"


@st.composite
def windowed(draw: st.DrawFn) -> Source:
    """Visits with a number, a moment and a text of a window; or the first rows of each person or of their groups."""
    order = draw(st.sampled_from(_ORDERS))
    match draw(st.integers(0, 5)):
        case 0:
            return _GROUPED, "u", "u.person_id"
        case 1:
            return _FIRST.format(order), "v", "v.person_id"
        case 2:
            join = draw(st.sampled_from(("", " JOIN people AS p ON p.id = v.person_id")))
            test = draw(st.sampled_from(("= 1", "<= 2", "BETWEEN 2 AND 3", "> 1")))
            return f"{_FEW.format(order)}{join} WHERE v.number {test}", "vp" if join else "v", "v.person_id"
    columns = (
        f"{_window(draw, functions)} AS {name}"
        for functions, name in ((_NUMBERS, "number"), (_MOMENTS, "moment"), (_TEXTS, "label"))
    )
    return f"(SELECT *, {', '.join(columns)} FROM visits) AS v", "vw", "v.person_id"


def _window(draw: st.DrawFn, functions: tuple[tuple[str, str], ...]) -> str:
    function, kind = draw(st.sampled_from(functions))
    if kind == "frame" and draw(st.integers(0, 2)) == 0 and "_value" not in function:
        order, frame = draw(st.sampled_from(_NEAR))
        return f"{function} OVER (PARTITION BY {draw(st.sampled_from(_PARTITIONS))} ORDER BY {order} {frame})"
    frame = draw(st.sampled_from({"frame": _FRAMES, "rows": _ROWS}.get(kind, ("",))))
    order = f"{draw(st.sampled_from(_ORDERS))}, id"
    return f"{function} OVER (PARTITION BY {draw(st.sampled_from(_PARTITIONS))} ORDER BY {order} {frame})"
