"""Cases of groups of which the dump lacks records: nothing is judged."""

from __future__ import annotations

from analytics.evaluate.balance.evaluated import case_with_gaps
from analytics.evaluate.balance.judgement.judge import judge
from schemas.evaluation_rules import balance_rules
from tests.unit.evaluate.balance.test_case_rows import member, row, topic


def test_a_group_that_may_lack_records_is_not_judged() -> None:
    sound = row([member("m", ["a"])], [topic("a", 1)])
    gaps = {"g": "a lost record may have changed it"}
    found = judge(case_with_gaps(sound, gaps), balance_rules())
    assert (found.verdict, found.cause, found.score) == ("cannot_tell", gaps["g"], None)
    other = judge(case_with_gaps(sound, {"other": "it lacks records"}), balance_rules())
    assert other.verdict == "unread"
