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
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psycopg

from proxy.twin.embedded import Cluster
from rules.mechanisms.release_plan import Choice
from tests.bench.usefulness.corpus import Question, questions
from tests.bench.usefulness.judge import Row, Verdict, error_of, judge, key_columns
from tests.samples import SAMPLES, Sample, database
from tests.samples.asking import Analyst
from tests.support.running import noisegate

_CAP = re.compile(r"^ +rows_per_unit: .*\n", re.MULTILINE)
_MOST_EPSILON = "30"  # of quantiles, which have no answer without noise: two at ε 5 each still miss by chance


@dataclass(frozen=True, slots=True)
class Judged:
    """A question at one ε, what became of it, and the error or the refusal."""

    question: Question
    epsilon: str
    verdict: Verdict
    words: str


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


def _ask(connection: psycopg.Connection, question: Question, epsilon: str) -> list[Row]:
    connection.execute(f"SET noisegate.epsilon = {epsilon}")
    return list(connection.execute(question.sql, prepare=False).fetchall())


def _judge(
    connection: psycopg.Connection, analyst: Analyst, question: Question, epsilon: str, times: int
) -> Judged:  # fmt: skip
    try:
        answers = [_ask(connection, question, epsilon) for _ in range(times)]
    except psycopg.Error as error:
        verdict = Verdict.REFUSED_RIGHTLY if question.is_for_rows else Verdict.REFUSED_WRONGLY
        return Judged(question, epsilon, verdict, str(error.diag.message_primary))
    if question.is_for_rows:
        return Judged(question, epsilon, Verdict.EMPTY, "groups of few, behind a threshold")
    truth = analyst.truth(question.sql)
    keys = key_columns(truth) if question.keys is None else question.keys
    errors = [error_of(answer, truth, keys) for answer in answers]
    middle = answers[errors.index(sorted(errors)[len(errors) // 2])]
    exact = _without_noise(analyst, question)
    verdict = judge(middle, _ask(connection, question, _MOST_EPSILON) if exact is None else exact, truth, keys)
    return Judged(question, epsilon, verdict, f"{median(errors):.1%} off")


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


if __name__ == "__main__":
    main()
