"""Of any number of findings a page reads those that it shows, and counts the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from reports.layout.section import Fold
from reports.page.findings import MOST_OF_A_RULE, gone, rules_found
from reports.page.workspace_tables import Condition, HeldTables
from tests.support.page_tables import finding, workspace


class CountedRows(HeldTables):
    """Tables that know how many cells of findings and their changes were read."""

    cells = 0

    def read(self, name: str, columns: Sequence[str], where: Condition | None = None) -> pa.Table:
        rows = super().read(name, columns, where)
        if name.startswith("finding"):
            self.cells += rows.num_rows * rows.num_columns
        return rows

    def folded(
        self, name: str, fold: Fold, columns: Sequence[str], later: Sequence[str] = ()
    ) -> pa.Table:
        numbers = pa.array(range(self[name].num_rows))
        kept = fold([self.read(name, columns).append_column("nth", numbers)])
        more = [each for each in later if each not in columns]
        self.cells += kept.num_rows * len(more)
        return self[name].take(kept["nth"]).select([*columns, *more])


def test_a_page_reads_no_more_of_findings_than_it_shows() -> None:
    groups = [f"group-{number:04}" for number in range(1000)]
    findings = [
        *(finding(each, "offsets_expired", severity="critical") for each in groups[:45]),
        *(finding(each) for each in groups),
        finding(groups[3], "lag_old"),
    ]
    changes = [
        {"finding_id": each["finding_id"], "change": "new", "message": "", "severity": "info"}
        for each in findings
    ]
    read = workspace(groups[:1], findings, {"finding_changes": changes})
    assert isinstance(read.tables, HeldTables)
    tables = CountedRows(read.tables)
    found = rules_found(replace(read, tables=tables), frozenset())
    assert [(each.name, each.count, len(each.shown)) for each in found] == [
        ("offsets_expired", 45, MOST_OF_A_RULE),
        ("lag_growing", 1000, MOST_OF_A_RULE),
        ("lag_old", 1, 1),
    ]
    shown = [each.finding_id for one in found for each in one.shown]
    in_order = [*findings[:MOST_OF_A_RULE], *findings[45 : 45 + MOST_OF_A_RULE], findings[-1]]
    assert shown == [each["finding_id"] for each in in_order]
    assert {each.change for one in found for each in one.shown} == {"new"}
    columns = len(tables["findings"].column_names)
    # Of all findings the rule, twice: to count them, and to pick the first; of these all else.
    assert tables.cells == 2 * len(findings) + (columns - 1 + 2) * len(shown)


def test_of_findings_that_are_gone_the_first_are_said_and_the_rest_counted() -> None:
    changes = [
        {
            "finding_id": str(number),
            "change": "gone" if number % 2 else "still_there",
            "message": f"number {number}",
            "severity": "warning",
        }
        for number in range(206)
    ]
    cells = gone(workspace([], [], {"finding_changes": changes}))
    assert [each.text for each in cells[:2]] == ["number 1", "number 3"]
    assert len(cells) == 101
    assert cells[-1].text == "3 more in evaluations/finding_changes"
