"""EXPLAIN of a private statement: what would be asked, how it is bounded, how much noise it gets, what it costs.

Nothing is run and nothing is paid: all of it follows from the statement, the rules and the ledger. The answer is a plan
without blocks, whose outer statement shows the lines as PostgreSQL shows its own. What the ledger says (the charge, and
then for each block what is served again) is filled in when it is answered. The words are ASCII, for any client.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain

from rules.frozen import replace
from rules.mechanisms.additive import laws_of, noise_of
from rules.mechanisms.cost import price
from rules.mechanisms.noised_outputs import (
    Average,
    CentredSum,
    Chosen,
    ChosenList,
    Count,
    Output,
    Sum,
    margin_of_average,
    margin_of_output,
    percent,
)
from rules.mechanisms.release_plan import Block, Choice, Ladder, Measure, Top, gumbel_scale
from rules.planner.plan import Plan
from rules.refusal import NotSupported, UnknownOption
from rules.release.empty_groups import Size, foreseen_sizes
from rules.release.margins import NOISE_WORDS, moving_outputs, rank_margin, rank_unit, unit_of_reach
from rules.replay import Kernel
from rules.sql.tree import Node, items, kind

Fact = tuple[str, str]

Facts = list[tuple[str, str | list[str]]]

_WIDEST = 120  # characters of a line

_UNBROKEN = re.compile(r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\s'"])+|['"]""")  # a space in quotes is part of a value


FORMATS = {"text": "text", "json": "json", "yaml": "text"}  # and the type of what PostgreSQL answers
_OPTIONS = frozenset(
    "analyze buffers costs format generic_plan memory serialize settings summary timing verbose wal".split()
)
_ROWS = (1_000, 10_000)  # of groups for which the error of a mean is told
_MARK = re.compile("\0(\\d+)\0")


def explained(plan: Plan, explain: Node, group_size: int, firsts: tuple[Plan, ...], kernel: Kernel) -> Plan:
    """A free plan that shows what another one is, and what is answered before it."""
    parts = (*firsts, plan)
    whole = replace(
        plan,
        blocks=tuple(block for part in parts for block in part.blocks),
        epsilon=sum((part.epsilon for part in parts), Decimal(0)),
        delta=sum((part.delta for part in parts), Decimal(0)),
    )
    spoken = [line for part in parts for line in part.spoken]
    facts = [_facts(block, lines, group_size, kernel) for block, lines in zip(whole.blocks, spoken, strict=True)]
    for place, size in enumerate(chain.from_iterable(_sizes(part.blocks, group_size) for part in parts)):
        facts[place] += [] if size is None else [_empty_groups(size, whole.blocks[place])]
    before = sum(len(first.blocks) for first in firsts)
    foreseen = whole.blocks[: before or None]  # the others are known when those are answered
    _foresee_errors(foreseen, facts, spoken)
    for number in range(len(foreseen)):
        facts[number].insert(0, ("served again", _mark(number + 1)))
    for number in range(before):
        facts[number].insert(0, ("answered first", "the blocks below use its answer, and show an example in its place"))
    charge = ("charge now, for the inner queries" if before else "charge now", _mark(0))
    form = _format(explain)
    shown = _as_text(whole, charge, facts) if form == "text" else _as_tree(whole, charge, facts, form)
    outer = tuple(_with_holes(shown, plan.parameters + 1))
    made = Plan((), outer, plan.parameters, Decimal(0), Decimal(0), foreseen=foreseen, results=plan.results)
    return replace(made, depends_on_time=plan.depends_on_time)


def _sizes(blocks: Sequence[Block], group_size: int) -> tuple[Size | None, ...]:
    return foreseen_sizes(blocks, [laws_of(block, group_size=group_size) for block in blocks])


def _empty_groups(size: Size, block: Block) -> Fact:
    """From which number on a group is shown, by the noise alone."""
    what = f"{float(size.number):,.3g} {size.what}" if size.what else f"a sum of {float(size.number):,.3g}"
    share = "a tenth of epsilon" if block.outputs else "all of epsilon"
    counted = f"; the {size.what} are counted for this, with {share}" if block.counted is not None else ""
    most = "at most " if block.ladders else ""
    return "empty groups", f"left out; a group of {most}about {what} or more is shown{counted} (noisegate.empty_groups)"


def _foresee_errors(foreseen: Sequence[Block], facts: list[list[Fact]], spoken: list[tuple[str, ...]]) -> None:
    """The errors of averages and their like end with what released numbers say of them, when it is answered."""
    places = [(number, output) for number, block in enumerate(foreseen) for output in moving_outputs(block)]
    for item, (number, output) in enumerate(places, start=1 + len(foreseen)):
        name = _error_of(spoken[number][output])
        facts[number] = [(key, value + _mark(item) if key == name else value) for key, value in facts[number]]


def _error_of(spoken: str) -> str:
    return f"error of {spoken}"


def _mark(item: int) -> str:
    """Stands for an item of the hole's array; no text of a statement has a NUL."""
    return f"\0{item}\0"


def _with_holes(text: str, hole: int) -> Iterator[str | int]:
    """The statement with items of an array for marks, between the parts of the literals in which they stand.

    The items have nothing in them that JSON would escape.
    """
    for place, part in enumerate(_MARK.split(text)):
        if place % 2:
            yield from ("' || (", hole, f"::pg_catalog.text[])[{int(part) + 1}] || E'")
        else:
            yield part


def _format(explain: Node) -> str:
    chosen = "text"
    for option in items(explain, "options"):
        _, element = kind(option)
        name = str(element.get("defname"))
        if name not in _OPTIONS:
            hint = "Over protected tables only FORMAT changes what is shown."
            raise UnknownOption(f'unrecognized EXPLAIN option "{name}"', hint=hint, about=name.upper())
        if name == "format":
            chosen = str(kind(element.get("arg"))[1].get("sval")).lower()
    if chosen not in FORMATS:
        message = f"EXPLAIN (FORMAT {chosen.upper()}) is not supported over protected tables"
        raise NotSupported(message, hint="Use TEXT, JSON or YAML.")
    return chosen


def _facts(block: Block, spoken: tuple[str, ...], group_size: int, kernel: Kernel) -> list[Fact]:
    ladders = [_ladder(ladder) for ladder in block.ladders]
    facts = [*block.explanation, *ladders, *(_measure(measure, group_size, block.level) for measure in block.measures)]
    for output, text in zip(block.outputs, spoken, strict=True):
        facts += [_error(block, output, text, group_size), *_noise(block, output, text, group_size)]
    if block.top is not None:
        facts.append(_top(block.top, group_size))
    if block.report is not None:
        facts.append(("report of what is cut", f"a lower bound of the rows, with epsilon {price(block.report)}"))
    return [("tables", ", ".join(block.tables)), *facts, *_statements(block, kernel)]


def _statements(block: Block, kernel: Kernel) -> Iterator[Fact]:
    """Yield what would run. Where all is chosen from histograms, nothing is summed."""
    if block.tally:
        yield "tally SQL", kernel.tally(block.tally).sql
    if any(isinstance(measure, Measure) for measure in block.measures):
        name = "inner SQL with the highest bounds" if block.ladders else "inner SQL"
        yield name, kernel.bounded(block.statement).sql
    histograms = dict.fromkeys(measure.statement for measure in block.measures if isinstance(measure, Choice))
    for number, histogram in enumerate(histograms, start=1):
        yield "histogram SQL" if number == 1 else f"histogram SQL {number}", kernel.bounded(histogram).sql


def _top(top: Top, group_size: int) -> Fact:
    """Explain why the groups are chosen: their scores have less noise than the counts of all would."""
    scale, reach = gumbel_scale(top, group_size=group_size) / top.factor, top.margin(group_size=group_size)
    chosen = f"{top.count} of {top.listed} chosen privately with epsilon {price(top.epsilon)}"
    words = f"{chosen}, Gumbel noise of scale {scale:.6g}; others may be missing that are larger by up to {reach:.6g}"
    return "top groups", words


def _ladder(ladder: Ladder) -> Fact:
    """Return which bound is chosen is an answer about the data, so it is not told here."""
    rungs = "; ".join(map(ladder.bound_text, ladder.rungs))
    return f"bound of {ladder.what}", f"chosen privately with epsilon {price(ladder.epsilon)} among {rungs}"


def _measure(measure: Measure | Choice, group_size: int, level: Decimal) -> Fact:
    """Only a choice has no scale that means a distance."""
    name = measure.name.removesuffix(" where TRUE")
    most = "at most " if measure.chosen_by else ""
    if isinstance(measure, Choice) and measure.blocks is not None:
        words = f"sensitivity {measure.sensitivity * group_size}, epsilon {price(measure.epsilon)}"
        return name, f"{words}, one of {measure.candidates} candidates by the exponential mechanism"
    if isinstance(measure, Choice):
        rows = measure.sensitivity // measure.factor * group_size
        words = f"sensitivity {most}{rows}, epsilon {price(measure.epsilon)}"
        return name, f"{words}, one of {measure.candidates} candidates by the exponential mechanism"
    noise = noise_of(measure, group_size=group_size)
    words = f"{noise.sensitivity_words(most)}, {noise.price_words}"
    if measure.vector is not None:
        words = f"{words} (once for all measures of vector {measure.vector + 1}, whose conditions exclude each other)"
    margin = f"{percent(level)} of draws within +/- {noise.law.margin(level)} steps"
    return name, f"{words}, {noise.scale_words(most)}, {margin}"


def _error(block: Block, output: Output, spoken: str, group_size: int) -> Fact:
    """Return how far noise moves what is shown; of a mean by the rows of its group, which are not known."""
    name, laws, level = _error_of(spoken), laws_of(block, group_size=group_size), percent(block.level)
    if isinstance(output, Average):
        most = margin_of_average(output, laws, block.level)
        rows = ", ".join(f"+/- {most / row:,.3g} in a group of {row:,} rows" for row in _ROWS)
        return name, f"at most about {rows} ({level} of answers)"
    if isinstance(output, Chosen | ChosenList):
        rank = rank_margin(output, block, group_size)
        counted = rank_unit(output, block)
        if rank is None:
            return name, "not known"
        unit = unit_of_reach(block.output_types[block.outputs.index(output)])
        value = f" and its value another +/- {float(output.reach):,.3g}{unit}" if output.reach else ""
        return name, f"its rank +/- {rank:,.3g} {counted}{value} in {level} of answers"
    margin = margin_of_output(output, laws, block.level)
    if margin is None:
        return name, "depends on the data; the NOTICE of the answer gives it"
    most_of = "at most " if block.ladders else ""
    return name, f"{most_of}+/- {float(margin):,.6g} in {level} of answers"


def _noise(block: Block, output: Output, spoken: str, group_size: int) -> Iterator[Fact]:
    """From which number on a word says how much noise matters; what depends on the answer is told with it."""
    if isinstance(output, Count | Sum | CentredSum):
        margin = margin_of_output(output, laws_of(block, group_size=group_size), block.level)
        assert margin is not None, "a count or a sum has a margin of its own"
        *others, _ = NOISE_WORDS
        words = (f"{word} from {float(margin) / most:,.6g} on" for word, most in others)
        yield f"noise in {spoken}", ", ".join(words)


def _as_text(plan: Plan, charge: Fact, facts: list[list[Fact]]) -> str:
    delta = f" delta={price(plan.delta)}" if plan.delta else ""
    rho = f" paid as rho={price(plan.rho)}" if plan.rho else ""
    cost = f"Private answer  (epsilon={price(plan.epsilon)}{rho}{delta})"
    lines = as_text(cost, charge, [list(block) for block in facts])
    if not plan.blocks:
        lines = ["Free: no protected row is read"]
    array = ", ".join(map(_quoted, lines))
    return f'SELECT pg_catalog.unnest(ARRAY[{array}]::pg_catalog.text[]) AS "QUERY PLAN"'


def _as_tree(plan: Plan, charge: Fact, facts: list[list[Fact]], form: str) -> str:
    """Costs in full: programs read these."""
    blocks = [
        [(name, list(of.tables) if name == "tables" else value) for name, value in block]
        for of, block in zip(plan.blocks, facts, strict=True)
    ]
    cost: Facts = [("epsilon", str(plan.epsilon)), ("delta", str(plan.delta))]
    cost += [("rho", str(plan.rho))] if plan.rho else []
    cost += [charge] if plan.blocks else []
    text = (as_json if form == "json" else as_yaml)(cost, blocks).replace("\\u0000", "\0")
    return f'SELECT ({_quoted(text)})::pg_catalog.{FORMATS[form]} AS "QUERY PLAN"'


def _quoted(text: str) -> str:
    """A literal that means the same whatever standard_conforming_strings says."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'" if "\\" in text else f"'{escaped}'"


def as_text(cost: str, charge: Fact, blocks: Iterable[Facts]) -> list[str]:
    """The lines of the plan; what is too long goes on in the next one, further in."""
    lines = [cost, *_wrapped("  ", *charge)]
    for number, block in enumerate(blocks, start=1):
        lines.append(f"  ->  Block {number}")
        for name, value in block:
            lines += _wrapped("        ", name, value if isinstance(value, str) else ", ".join(value))
    return lines


def as_json(plan: Facts, blocks: Iterable[Facts]) -> str:
    """A tree of nodes, as viewers of plans read it."""
    return json.dumps([{"Plan": _tree(plan, blocks)}], indent=2, ensure_ascii=False)


def as_yaml(plan: Facts, blocks: Iterable[Facts]) -> str:
    """The same tree as lines; every value is quoted as JSON has it, which YAML reads too."""
    lines = ["- Plan: ", *(f"    {line}" for line in _yaml([("Node Type", "Private Answer"), *plan]))]
    lines.append("    Plans: ")
    for block in blocks:
        first, *rest = _yaml([("Node Type", "Block"), *block])
        lines += [f"      - {first}", *(f"        {line}" for line in rest)]
    return "\n".join(lines)


def _tree(plan: Facts, blocks: Iterable[Facts]) -> dict[str, object]:
    below = [{"Node Type": "Block", **dict(block)} for block in blocks]
    return {"Node Type": "Private Answer", **dict(plan), "Plans": below}


def _yaml(facts: Facts) -> Iterator[str]:
    for name, value in facts:
        key = name if re.fullmatch(r"[\w ]+", name) else json.dumps(name, ensure_ascii=False)
        if isinstance(value, str):
            yield f"{key}: {json.dumps(value, ensure_ascii=False)}"
        else:
            yield f"{key}: "
            yield from (f"  - {json.dumps(item, ensure_ascii=False)}" for item in value)


def _wrapped(indent: str, name: str, value: str) -> Iterator[str]:
    """Broken where a space is no part of a value, so that the lines of SQL may be run as they are."""
    first, *words = _UNBROKEN.findall(f"{name}: {value}")
    line = f"{indent}{first}"
    for word in words:
        if len(line) + 1 + len(word) > _WIDEST:
            yield line
            line = f"{indent}   "
        line = f"{line} {word}"
    yield line
