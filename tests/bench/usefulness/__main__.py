"""How many of the questions that analysts ask of small databases get an answer of use, by ε.

python -m tests.bench.usefulness
python -m tests.bench.usefulness --epsilon 1 --show         # each question, its verdict and its error
python -m tests.bench.usefulness --times 9                  # the median answer of nine

The proxy answers as it is started by a DBA; what an answer would be without noise is planned and run beside it.
"""

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from statistics import median

import psycopg

from proxy.twin.embedded import Cluster
from rules.mechanisms.release_plan import Choice
from tests.bench.usefulness.corpus import Question, questions
from tests.bench.usefulness.judge import Row, Verdict, error_of, is_misleading, judge, key_columns, shown_of
from tests.samples import SAMPLES, Sample, database
from tests.samples.asking import Analyst
from tests.support.running import noisegate

_CAP = re.compile(r"^ +rows_per_unit: .*\n", re.MULTILINE)
_LIMIT = re.compile(r" LIMIT \d+( OFFSET \d+)?$")
_SIZE = re.compile(r"A group of about (?P<size>[0-9,]+) ")  # of the NOTICE
_LEFT_OUT = "left out: their numbers could be noise alone"  # of the NOTICE
_MOST_EPSILON = "30"  # of quantiles, which have no answer without noise: two at ε 5 each still miss by chance


@dataclass(frozen=True, slots=True)
class Judged:
    """A question at one ε, what became of it, and the error or the refusal."""

    question: Question
    epsilon: str
    verdict: Verdict
    words: str
    rows: "Rows" = field(default_factory=lambda: Rows())


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of the answers to a question that has keys, in all rounds together."""

    shown: int = 0
    existing: int = 0  # of those
    true: int = 0
    found: int = 0  # of those
    large: int = 0  # true rows that count at least twice as much as the NOTICE says that a group needs
    large_found: int = 0
    without_any: int = 0  # answers that hide all true rows


def main() -> None:
    """Ask all questions, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.usefulness", description=__doc__.partition("\n")[0])
    parser.add_argument("--epsilon", default="1,0.1", help="of each question (default: 1,0.1)")
    parser.add_argument("--times", type=int, default=3, help="that each is asked; the median error counts (default: 3)")
    parser.add_argument("--chosen", action="store_true", help="leave the caps of rows to the proxy, which chooses them")
    parser.add_argument("--show", action="store_true", help="print a line for each question")
    arguments = parser.parse_args()
    epsilons = arguments.epsilon.split(",")
    cluster = Cluster.start()
    try:
        judged = [judged for sample in SAMPLES for judged in _sample(cluster, sample, epsilons, arguments)]
    finally:
        cluster.stop()
    if arguments.show:
        for each in judged:
            about = f"{each.question.sample.name:8} {each.question.words}"
            print(f"{each.epsilon:>5}  {each.verdict:16} {about}  {each.words}")
    _print_table(judged, epsilons)


def _sample(
    cluster: Cluster, sample: Sample, epsilons: list[str], arguments: argparse.Namespace
) -> list[Judged]:  # fmt: skip
    """Ask the questions about one database."""
    rules = _CAP.sub("", sample.text()) if arguments.chosen else sample.text()
    rules, name = rules.replace("max_epsilon: 10,", f"max_epsilon: {_MOST_EPSILON},"), f"sample_{sample.name}"
    with (
        database(cluster, sample) as owner,
        tempfile.TemporaryDirectory() as directory,
        noisegate(Path(directory), cluster.dsn(name), rules=rules, name=name) as running,
        psycopg.connect(running.dsn(), autocommit=True) as connection,
    ):
        analyst = Analyst.of(sample, owner, cluster.dsn(name))
        connection.execute("SET noisegate.reuse = off")
        asked = [question for question in questions() if question.sample is sample]
        return [
            _judge(connection, analyst, question, epsilon, arguments.times)
            for epsilon in epsilons
            for question in asked
        ]


def _ask(
    connection: psycopg.Connection, question: Question, epsilon: str, told: list[str] | None = None
) -> list[Row]:  # fmt: skip
    connection.execute(f"SET noisegate.epsilon = {epsilon}")
    notices = [] if told is None else told
    handler = lambda notice: notices.append(str(notice.message_primary))  # noqa: E731
    connection.add_notice_handler(handler)
    try:
        return list(connection.execute(question.sql, prepare=False).fetchall())
    finally:
        connection.remove_notice_handler(handler)


def _judge(
    connection: psycopg.Connection, analyst: Analyst, question: Question, epsilon: str, times: int
) -> Judged:  # fmt: skip
    told: list[str] = []
    try:
        answers = [_ask(connection, question, epsilon, told) for _ in range(times)]
    except psycopg.Error as error:
        verdict = Verdict.REFUSED_RIGHTLY if question.is_for_rows else Verdict.REFUSED_WRONGLY
        return Judged(question, epsilon, verdict, str(error.diag.message_primary))
    if question.is_for_rows:
        return Judged(question, epsilon, Verdict.EMPTY, "groups of few, behind a threshold")
    truth = analyst.truth(question.sql)
    keys = key_columns(truth) if question.keys is None else question.keys
    errors = [error_of(answer, truth, keys) for answer in answers]
    middle = answers[errors.index(sorted(errors)[len(errors) // 2])]
    existing = analyst.truth(_LIMIT.sub("", question.sql))
    rows = _rows(question, answers, truth, existing, keys, told) if keys else Rows()
    if is_misleading(answers, truth, existing, keys):
        return Judged(question, epsilon, Verdict.MISLEADING, f"{median(errors):.1%} off", rows)
    exact = _without_noise(analyst, question)
    without_noise = _ask(connection, question, _MOST_EPSILON) if exact is None else exact
    leaves_out = any(_LEFT_OUT in notice for notice in told)
    verdict = judge(middle, without_noise, truth, keys, leaves_out=leaves_out)
    return Judged(question, epsilon, verdict, f"{median(errors):.1%} off", rows)


def _rows(
    question: Question,
    answers: Sequence[Sequence[Row]],
    truth: Sequence[Row],
    existing: Sequence[Row],
    keys: int,
    told: Sequence[str],
) -> Rows:
    """Count rows. Which true ones are large is known where the first number is a count."""
    sizes = [int(found["size"].replace(",", "")) for notice in told if (found := _SIZE.search(notice))]
    is_count = question.sql.upper().find("COUNT(*)") == min(
        (at for name in ("COUNT(", "SUM(", "AVG(") if (at := question.sql.upper().find(name)) >= 0), default=-1
    )
    large = [row for row in truth if isinstance(size := row[keys], int) and size >= 2 * max(sizes)] if (
        sizes and is_count and not _LIMIT.search(question.sql) and all(len(row) > keys for row in truth)
    ) else []  # fmt: skip
    return Rows(
        sum(map(len, answers)),
        sum(shown_of(answer, existing, keys) for answer in answers),
        len(truth) * len(answers),
        sum(shown_of(truth, answer, keys) for answer in answers),
        len(large) * len(answers),
        sum(shown_of(large, answer, keys) for answer in answers),
        sum(not answer for answer in answers) if truth else 0,
    )


def _without_noise(analyst: Analyst, question: Question) -> list[Row] | None:
    """The answer without noise; None where quantiles are chosen, which has no such answer."""
    made = analyst.lab.plan(question.sql, question.sample.policy(), time_zone="UTC")
    if any(isinstance(measure, Choice) for block in made.blocks for measure in block.measures):
        return None
    return list(analyst.lab.run(analyst.lab.outer(made), made).fetchall())


def _print_table(judged: list[Judged], epsilons: list[str]) -> None:
    counts = {epsilon: Counter(each.verdict for each in judged if each.epsilon == epsilon) for epsilon in epsilons}
    print(
        f"| {'of ' + str(len(questions())) + ' questions':<22} |"
        + "".join(f" ε {epsilon:<5} |" for epsilon in epsilons)
    )
    print(f"|{'-' * 24}|" + f"{'-' * 9}|" * len(epsilons))
    for verdict in Verdict:
        print(f"| {verdict:<22} |" + "".join(f" {counts[epsilon][verdict]:<7} |" for epsilon in epsilons))
    for epsilon in epsilons:
        of_rows = (astuple(each.rows) for each in judged if each.epsilon == epsilon)
        shown, existing, true, found, large, large_found, without_any = map(sum, zip(*of_rows, strict=True))
        print(
            f"ε {epsilon}: {existing} of {shown} shown rows exist; {true - found} of {true} true rows are hidden, "
            f"all of them in {without_any} answers; "
            f"{large_found} of {large} of at least twice the size that the NOTICE names are shown"
        )


if __name__ == "__main__":
    main()
