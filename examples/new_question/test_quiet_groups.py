"""Groups of the bundled failover that commit nothing; run where the example is laid over a copy."""

from __future__ import annotations

import sys
from pathlib import Path

from analytics.questions.findings.configured_rules import configured_rules
from analytics.questions.question import audited_questions
from groupscope import open_dump

DUMP = Path(sys.argv[1])


def main() -> None:
    """Ask, and check what is answered against the offsets themselves."""
    with open_dump(str(DUMP)) as dump:
        state = dump.replay()
        answer = state.ask("quiet_groups", minutes=2)
        commits = state.committed_offsets
    rows = {row["group_id"]: row for row in answer.quiet_groups.to_dicts()}
    assert answer.cannot_tell == (), answer.cannot_tell
    newest = {name: of["commit_timestamp"].max() for (name,), of in commits.group_by("group_id")}
    for name, row in rows.items():
        assert row["last_commit_at"] == newest.get(name), name
        is_quiet = row["quiet_ms"] is not None and row["quiet_ms"] > 2 * 60_000
        assert (row["verdict"] == "quiet") == is_quiet, row
    assert {"quiet", "committing"} <= {row["verdict"] for row in rows.values()}
    assert "quiet_groups" in {each.name for each in audited_questions()}
    assert "group_quiet" in {each.name for each in configured_rules({})}


if __name__ == "__main__":
    main()
