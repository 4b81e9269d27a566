"""What tools send crosses the pipe to a worker and back as it is, and what was changed on the way is no plan."""

import random
from pathlib import Path

from proxy.demo.run import Shop
from proxy.execute.pipe import QUESTIONS, READ
from rules.planner.plan import NeedsInner, Plan
from rules.policy.load import load_policy
from rules.sql.read import read
from rules.sql.statement import Reading, split_around
from tests.cases.case_file import all_cases
from tests.execute.crossing import answers, check_crosses, check_read_or_malformed
from tests.support.catalogs import catalog_of


def test_all_that_tools_send_crosses_as_it_is(demo: Shop, demo_rules: str) -> None:
    rules = load_policy(demo_rules, "rules.yaml", {"NOISEGATE_DATABASE": "shop"}), catalog_of(demo.owner_dsn)
    kinds, draw = set[type](), random.Random(9)
    for text in dict.fromkeys(step.sql for case in all_cases(Path(__file__).parent) for step in case.steps):
        reading = read(text)
        again = READ.decode(READ.encode(reading))
        assert isinstance(again, Reading)
        assert READ.encode(again) == READ.encode(reading)
        for around in filter(None, map(split_around, reading.statements)):
            for asked, made in answers(around.query, rules):
                assert QUESTIONS.decode(QUESTIONS.encode(asked)) == asked
                written = check_crosses(made)
                kinds.add(type(made))
                for _ in range(5):
                    changed = bytearray(written)
                    changed[draw.randrange(len(written))] ^= 1 << draw.randrange(8)
                    check_read_or_malformed(bytes(changed))
                    check_read_or_malformed(written[: draw.randrange(len(written))])

    assert {Plan, NeedsInner} < kinds
