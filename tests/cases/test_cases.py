"""What tools really send, through a running proxy: each statement gets what makes the tool work."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.demo.run import Shop
from tests.cases.case_file import Case, all_cases
from tests.cases.conversation import Conversation, Line
from tests.support.running import Noisegate

CASES = list(all_cases(Path(__file__).parent))


@pytest.fixture
def conversation(proxy: Noisegate, demo: Shop) -> Iterator[Conversation]:
    found = Conversation(Line.to(proxy.dsn()), Line.to(demo.owner_dsn))
    yield found
    found.proxy.connection.close()
    found.truth.connection.close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_statement_gets_what_the_tool_needs(case: Case, conversation: Conversation) -> None:
    for step in case.steps:
        conversation.step(step)
