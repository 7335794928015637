"""A view for each topic: readers, lag, growth, what is kept, what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from reports.page.build import page_of
from reports.page.forms import html_of, text_of
from reports.page.model import Page, TopicView
from reports.page.rows import topic_anchor
from reports.page.workspace_tables import Condition, fulfilling
from schemas.manifest import Manifest
from tests.support.page_tables import AT, MANIFEST, finding, workspace

GROUPS = ["billing", "shipping"]
_LOG = {**MANIFEST["partitions"][0], "topic": "__cluster_metadata"}
WITH_METADATA_LOG: Manifest = {**MANIFEST, "partitions": [*MANIFEST["partitions"], _LOG]}  # type: ignore[list-item,typeddict-item]


def page(
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    findings: Sequence[Mapping[str, Any]] = (),
    manifest: Manifest = MANIFEST,
) -> Page:
    return page_of(workspace(GROUPS, findings, tables, manifest=manifest))


def lag(group: str, topic: str, records: int | None, partition: int = 0) -> dict[str, Any]:
    place = {"group_id": group, "topic": topic, "partition": partition}
    return {**place, "lag": records, "status": "OK", "verdict": "behind", "kind": "assigned"}


def reader(topic: str, group: str) -> dict[str, Any]:
    return {"topic": topic, "group_id": group, "group_type": "consumer", "how": "owns"}


def file(topic: str, base: int, size: int, hours: float | None, **columns: Any) -> dict[str, Any]:
    """A file of a log on `broker-1`; its newest record is so many hours after `AT`."""
    newest = None if hours is None else AT + timedelta(hours=hours)
    log = {"topic": topic, "partition": 0, "copy": "broker-1", "base_offset": base}
    return {
        **log,
        "size_bytes": size,
        "largest_timestamp": newest,
        "is_largest": hours is not None,
        **columns,
    }


def facts(view: TopicView) -> dict[str, str]:
    return {each.name: each.value.text for each in view.facts}


def test_a_topic_says_who_reads_it_and_how_far_behind_they_are() -> None:
    (view,) = page(
        {
            "lag": [lag("billing", "orders", 7), lag("shipping", "orders", 5, 1)],
            "topic_readers": [reader("orders", "billing"), reader("orders", "shipping")],
        }
    ).topics
    assert facts(view)["Groups that read it, or did"] == "2"
    assert facts(view)["Lag, of all groups"] == "12"
    readers, lags = view.grids
    assert [row[0].text for row in readers.rows] == ["billing", "shipping"]
    assert [(row[0].text, row[2].text) for row in lags.rows] == [
        ("billing", "7"),
        ("shipping", "5"),
    ]


def test_a_lag_that_is_not_known_is_no_part_of_the_sum() -> None:
    (view,) = page({"lag": [lag("billing", "orders", 7), lag("billing", "orders", None, 1)]}).topics
    assert facts(view)["Lag, of all groups"] == ">= 7"
    assert facts(view)["Lag not known"] == "1 of 2 pairs of group and partition"
    (view,) = page({"lag": [lag("billing", "orders", None)]}).topics
    assert facts(view)["Lag, of all groups"] == "cannot tell"


def test_a_lag_whose_end_is_interpolated_is_about_so_many() -> None:
    near = {**lag("billing", "orders", 7), "log_end_bound": "interpolated"}
    (view,) = page({"lag": [near]}).topics
    assert facts(view)["Lag, of all groups"] == "~ 7"
    some = [near, lag("billing", "orders", None, 1)]
    (view,) = page({"lag": some}).topics
    assert facts(view)["Lag, of all groups"] == ">= ~ 7"
    # Where the commit lies between the bounds of the end there is no lag that would be about so.
    between = {**lag("billing", "orders", None, 1), "log_end_bound": "interpolated"}
    (view,) = page({"lag": [lag("billing", "orders", 7), between]}).topics
    assert facts(view)["Lag, of all groups"] == ">= 7"


def test_an_offset_beyond_the_end_is_no_part_of_the_sum() -> None:
    (view,) = page({"lag": [lag("billing", "orders", 7), lag("billing", "orders", -9, 1)]}).topics
    assert facts(view)["Lag, of all groups"] == ">= 7"
    assert facts(view)["Lag not known"] == (
        "1 of 2 pairs of group and partition, 1 of them with an offset beyond the end"
    )


def ended(minutes: float, end: int, partition: int = 0) -> dict[str, Any]:
    place = {"topic": "orders", "partition": partition}
    return {**place, "at": AT + timedelta(minutes=minutes), "log_end_offset": end}


def committed(minutes: float, offset: int | None, **columns: Any) -> dict[str, Any]:
    place = {"group_id": "billing", "topic": "orders", "partition": 0, "event": "commit"}
    at = AT + timedelta(minutes=minutes)
    return {**place, "committed_offset": offset, "effective_timestamp": at, **columns}


def lags_drawn(
    ends: Sequence[Mapping[str, Any]], history: Sequence[Mapping[str, Any]]
) -> list[str]:
    """What is said of the charts of lags, in the view of a topic."""
    tables = {
        "lag": [lag("billing", "orders", 5)],
        "log_end_samples": ends,
        "offset_history": history,
    }
    (view,) = page(tables).topics
    return [each.says for each in view.figures if each.anchor.endswith("-lags")]


def test_lags_are_drawn_where_logs_ended_at_several_instants() -> None:
    ends = [ended(1, 10), ended(2, 30), ended(3, 40)]
    history = [committed(0, 4), committed(1.5, 9), committed(2.5, 38)]
    (said,) = lags_drawn(ends, history)
    # 6, 21 and 2 records: of each instant the end, and the offset in force then.
    assert said == (
        "billing, partition 0 was furthest behind: 21 records at 2026-11-21T09:22:00.000Z."
    )
    view = page(
        {
            "lag": [lag("billing", "orders", 5)],
            "log_end_samples": ends,
            "offset_history": history,
        }
    ).topics[0]
    assert view.notes == ()


def test_an_end_before_any_commit_or_below_the_one_in_force_is_no_point() -> None:
    ends = [ended(1, 10), ended(2, 30)]
    assert lags_drawn(ends, [committed(1.5, 9)]) == []
    assert lags_drawn(ends, [committed(0, 20)]) == []
    assert lags_drawn(ends, [committed(0, 4), committed(1.5, None, event="removed")]) == []
    assert lags_drawn([ended(1, 10)], [committed(0, 4)]) == []


def test_lags_of_a_history_that_is_not_whole_say_so() -> None:
    lacking = {"complete": False, "missing": "history before offset 9 was compacted"}
    (said,) = lags_drawn(
        [ended(1, 10), ended(2, 30)], [committed(0, 4), committed(1.5, 9, **lacking)]
    )
    assert "Cannot tell whether 1 of 2 rows are so: history before offset 9" in said


def test_topics_with_the_worst_findings_come_first_then_the_largest_lags() -> None:
    topics = page(
        {"lag": [lag("billing", "small", 1), lag("billing", "large", 9), lag("billing", "bad", 0)]},
        [finding("billing", topic="bad")],
    ).topics
    assert [(each.topic.text, each.severity) for each in topics] == [
        ("bad", "warning"),
        ("large", "neutral"),
        ("small", "neutral"),
    ]
    assert [each.text for each in topics[0].findings] == ["the lag of billing grows"]


def test_bytes_a_day_are_those_behind_the_first_file_that_is_done() -> None:
    day = 24.0
    files = [
        file("orders", 0, 999, 0),
        file("orders", 10, 3000, day),
        file("orders", 20, 5000, 2 * day),
        file("orders", 30, 70, None),
        # A copy that holds less is not counted once more.
        file("orders", 20, 5000, 2 * day, copy="broker-2"),
    ]
    tables = {"lag": [lag("billing", "orders", 7)], "data_segments": files}
    (view,) = page(tables, manifest=WITH_METADATA_LOG).topics
    assert facts(view)["Bytes, of one copy"] == "9.1 kB in 4 files of 1 partition"
    assert facts(view)["Bytes a day, of what is kept"] == "4.0 kB"
    # Without the metadata log nobody knows whether a cleaner takes bytes out of them.
    (view,) = page(tables).topics
    assert facts(view)["Bytes a day, of what is kept"] == (
        ">= 4.0 kB (compaction may have taken more: cleanup.policy is not known)"
    )


def test_bytes_a_day_of_some_partitions_are_a_bound() -> None:
    files = [
        file("orders", 0, 10, 0),
        file("orders", 10, 2000, 24),
        file("orders", 0, 500, None, partition=1),
    ]
    tables = {"lag": [lag("billing", "orders", 7)], "data_segments": files}
    (view,) = page(tables, manifest=WITH_METADATA_LOG).topics
    assert facts(view)["Bytes a day, of what is kept"] == ">= 2.0 kB (of 1 of 2 partitions)"


def test_where_nothing_tells_how_a_topic_grows_the_reason_is_said() -> None:
    lags = [lag("billing", "orders", 7)]
    one_file = [file("orders", 0, 10, None)]
    two = [file("orders", 0, 10, 0), file("orders", 10, 2000, 24)]
    compact = {"resource_type": "topic", "resource": "orders", "name": "cleanup.policy"}
    of_brokers = {"resource_type": "broker", "resource": "", "name": "log.cleanup.policy"}
    for tables, reason in (
        ({}, "its log directories are not in the dump"),
        ({"data_segments": one_file}, "no partition has two files that are done"),
        (
            {"data_segments": two, "configs": [{**compact, "value": "compact"}]},
            "compaction takes bytes out of files that are done",
        ),
        (
            {"data_segments": two, "configs": [{**of_brokers, "value": "delete,compact"}]},
            "compaction takes bytes out of files that are done",
        ),
    ):
        (view,) = page({"lag": lags, **tables}).topics
        assert facts(view)["Bytes a day, of what is kept"].startswith(f"cannot tell: {reason}")


def test_what_is_set_for_a_topic_is_told_by_the_metadata_log_alone() -> None:
    lags = {"lag": [lag("billing", "orders", 7)]}
    (view,) = page(lags).topics
    assert facts(view)["Set for the topic"] == "cannot tell: the metadata log is not in the dump"
    manifest = WITH_METADATA_LOG
    (view,) = page(lags, manifest=manifest).topics
    assert facts(view)["Set for the topic"] == (
        "no retention of its own in the metadata log that was read"
    )
    hour = {
        "resource_type": "topic",
        "resource": "orders",
        "name": "retention.ms",
        "value": "3600000",
    }
    (view,) = page({**lags, "configs": [hour]}, manifest=manifest).topics
    assert facts(view)["Set for the topic"] == "retention.ms=3600000"
    unsure = {**hour, "complete": False, "missing": "a clock was set back"}
    (view,) = page({**lags, "configs": [unsure]}, manifest=manifest).topics
    assert facts(view)["Set for the topic"] == (
        "retention.ms=3600000 (cannot tell: a clock was set back)"
    )


def commits_of(group: str) -> list[dict[str, Any]]:
    """Five commits in as many minutes, each a record further."""
    return [
        {
            "group_id": group,
            "topic": "orders",
            "partition": 0,
            "event": "commit",
            "committed_offset": 10 + step,
            "advance": None if not step else 1,
            "effective_timestamp": AT + timedelta(minutes=step),
            "complete": True,
        }
        for step in range(5)
    ]


def test_the_chart_says_that_lag_over_time_is_not_in_commits() -> None:
    lags = [lag("billing", "orders", 7)]
    (view,) = page({"lag": lags, "offset_history": commits_of("billing")}).topics
    (chart,) = view.figures
    assert chart.says == "billing came furthest: 4 records by 2026-11-21T09:24:00.000Z."
    assert "nothing tells where the log ended at other times" in view.notes[0]


def test_the_chart_says_of_how_many_groups_it_is() -> None:
    tables = {
        "topic_readers": [reader("orders", group) for group in (*GROUPS, "elsewhere")],
        "offset_history": [row for group in GROUPS for row in commits_of(group)],
    }
    (view,) = page(tables).topics
    assert view.figures[0].says.startswith(
        "Of 2 of 3 groups, those that are drawn, billing came furthest: 4 records by "
    )


def test_of_many_topics_the_rest_is_counted_and_tables_lead_to_views() -> None:
    lags = [lag("billing", f"topic-{n:02}", n) for n in range(50)]
    made = page({"lag": lags})
    assert len(made.topics) == 40
    assert made.more_topics == "10 more topics in evaluations/topic_readers"
    html = html_of(made)
    assert f'<a href="#{topic_anchor("topic-20")}">topic-20</a>' in html
    assert f'href="#{topic_anchor("topic-00")}"' not in html
    assert "TOPIC BY TOPIC" in text_of(made, 120)


def test_a_view_is_closed_until_somebody_opens_it() -> None:
    html = html_of(page({"lag": [lag("billing", "orders", 7)]}))
    assert '<details class="story topic neutral">' in html


def test_rows_come_in_pieces_and_the_largest_lags_are_kept() -> None:
    many = [lag(f"group-{n:03}", "orders", n) for n in range(200)]
    read = workspace(GROUPS, [], {"lag": many})
    whole = read.tables.read("lag", ())

    def pieces(name: str, columns: Sequence[str], where: Condition | None = None) -> Any:
        rows = whole if name == "lag" else tables(name, columns)
        rows = rows if where is None else fulfilling(rows, where)
        return (rows.slice(n, 7).select(list(columns)) for n in range(0, max(rows.num_rows, 1), 7))

    def tables(name: str, columns: Sequence[str]) -> pa.Table:
        return read.tables.read(name, columns)

    object.__setattr__(read.tables, "pieces", pieces)
    (view,) = page_of(read).topics
    assert facts(view)["Lag, of all groups"] == f"{sum(range(200)):,}"
    lags = view.grids[-1]
    assert [row[2].text for row in lags.rows] == [str(n) for n in range(199, 187, -1)]
    assert lags.more == "188 more in evaluations/lag"
