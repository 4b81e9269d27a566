"""The questions of the usefulness benchmark: PostgreSQL answers all; those for rows are never answered with rows."""

from collections import Counter

import pytest

from rules.mechanisms.release_plan import PrivateGroups
from rules.refusal import Refusal
from tests.bench.usefulness.corpus import Question, questions
from tests.samples.asking import Analyst

CORPUS = questions()


def test_the_corpus_is_large_and_of_all_samples() -> None:
    counts = Counter(question.sample.name for question in CORPUS)

    assert len(CORPUS) == len({(question.sample.name, question.sql) for question in CORPUS}) >= 150
    assert min(counts.values()) > 40


@pytest.mark.parametrize("question", CORPUS, ids=lambda question: question.words)
def test_a_question_is_one_that_the_database_answers(analysts: dict[str, Analyst], question: Question) -> None:
    assert analysts[question.sample.name].truth(question.sql)


@pytest.mark.parametrize(
    "question", [question for question in CORPUS if question.is_for_rows], ids=lambda question: question.words
)
def test_a_question_for_rows_is_refused_or_passes_a_threshold(analysts: dict[str, Analyst], question: Question) -> None:
    try:
        blocks = analysts[question.sample.name].blocks(question.sql)
    except Refusal:
        return
    assert blocks
    assert all(isinstance(block.groups, PrivateGroups) for block in blocks)
