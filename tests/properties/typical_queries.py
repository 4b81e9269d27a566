"""Questions for typical values, as analysts ask them and as they should not."""

from hypothesis import strategies as st

SOURCES = {
    "visits AS v": ("v.cost", "v.score", "v.rating", "v.count", "v.big"),
    "people AS p": ("p.age", "p.height", "p.wealth"),
    "people AS p JOIN visits AS v ON v.person_id = p.id": ("p.height", "v.cost", "v.score", "v.count"),
    "items AS i": ("i.amount", "i.line"),
    "visits AS v JOIN places AS l ON l.id = v.place_id": ("v.cost", "l.size"),
}
KEYS = {"v": ("v.kind", "v.kind, v.place_id"), "p": ("p.city", "p.vip"), "i": ("i.flag", "i.label")}
FORMS = (
    *("avg({x})", "sum({x}) / nullif(sum({y}), 0)", "sum({x})::numeric / count(*)", "stddev({x})", "variance({x})"),
    *("var_pop({x}) / nullif(avg({y}), 0)", "stddev_pop({x})", "corr({x}, {y})", "regr_slope({x}, {y})"),
    *("regr_intercept({x}, {y})", "regr_r2({x}, {y})", "covar_samp({x}, {y})", "covar_pop({x}, {y})"),
    *("regr_avgx({x}, {y})", "regr_avgy({x}, {y})", "regr_sxx({x}, {y})", "regr_syy({x}, {y})", "regr_sxy({x}, {y})"),
    *("regr_count({x}, {y}) * 0.5", "min({x})", "max({x}) - min({y})", "mode() WITHIN GROUP (ORDER BY {x})"),
    *(
        f"{name}({share}) WITHIN GROUP (ORDER BY {{x}}{direction})"
        for name in ("percentile_cont", "percentile_disc")
        for share, direction in (("0.5", ""), ("0.9", " DESC"), ("1", ""))
    ),
    *("count(*) FILTER (WHERE {x} > 1) / count(*)::float8", "count(DISTINCT {x})::numeric / nullif(count({x}), 0)"),
    *("avg({x}) FILTER (WHERE {y} > 0)", "coalesce(avg({x}), 1)", "CASE WHEN count(*) > 2 THEN avg({x}) END"),
    *("sqrt(abs(avg({x})))", "ln(nullif(abs(avg({x})), 0))", "avg(power({x}, 2)) - avg({y})", "exp(avg({x}))"),
)
# Sums of their squares are beyond the largest double, or nearer to zero than the least.
FAR = (
    "{}",
    "{}",
    "{}",
    "power({} + 100000, 36)",
    "({})::float8 * 1e250",
    "({})::float8 * 1e-250",
    "({})::numeric * 1e-170",
)
BOUNDS = ((0, 1), (-1, 1), (0, 100), (-1000, 1000), (0, "1e-6"), ("-1e30", "1e30"), ("0.3", 3))


@st.composite
def typical_queries(draw: st.DrawFn) -> str:
    """One or two typical values over one to three tables, in groups or not."""
    source = draw(st.sampled_from(sorted(SOURCES)))
    keys = draw(st.sampled_from(("", *(key for name in KEYS if f" AS {name}" in source for key in KEYS[name]))))
    asked = [_typical(draw, SOURCES[source]) for _ in range(draw(st.integers(1, 2)))]
    return f"SELECT {', '.join(filter(None, [keys, *asked]))} FROM {source}" + (f" GROUP BY {keys}" if keys else "")


def _typical(draw: st.DrawFn, numbers: tuple[str, ...]) -> str:
    x, y = (draw(st.sampled_from(FAR)).format(draw(st.sampled_from(numbers))) for _ in range(2))
    form = draw(st.sampled_from(FORMS)).format(x=x, y=y)
    low, high = draw(st.sampled_from(BOUNDS))
    blocks = draw(st.sampled_from(("", ", 1", ", 2", ", blocks => 5", ", blocks => 4096")))
    return f"noisegate.typical({form}, {low}, {high}{blocks})"
