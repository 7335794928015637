"""What Kafka's tools of several releases printed is read back as rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.describe.tool_output import (
    CONSUMER,
    MEMBERS,
    OFFSETS,
    SHARE,
    STATE,
    STREAMS,
    SavedOutput,
    View,
    read_saved_output,
)

SHARES_4_1 = "kafka-4.1.2-share-streams"


def saved(repository: Path, dump: str, name: str, *names: str) -> SavedOutput:
    folder = repository / "tests" / "data" / "dumps" / dump / "tools" / "describe"
    return read_saved_output((folder / f"{name}.txt").read_text("utf-8"), names)


@pytest.mark.parametrize(
    ("dump", "name", "views", "rows"),
    [
        ("kafka-2.0.1-v1", "consumer-groups-offsets", [View(CONSUMER, OFFSETS)], 91),
        ("kafka-3.9.2-classic", "consumer-groups-offsets", [View(CONSUMER, OFFSETS)], 53),
        ("kafka-3.9.2-classic", "consumer-groups-members", [View(CONSUMER, MEMBERS)], 11),
        ("kafka-4.0.2-share", "share-groups-offsets", [View(SHARE, OFFSETS)], 28),
        ("kafka-4.0.2-share", "consumer-groups-members", [View(CONSUMER, MEMBERS)], 13),
        (
            "kafka-4.1.2-share-streams",
            "streams-groups-members-verbose",
            [View(STREAMS, MEMBERS)],
            1,
        ),
        ("kafka-4.1.2-share-streams", "share-groups-offsets-verbose", [View(SHARE, OFFSETS)], 37),
        ("kafka-4.2.1-share", "streams-groups-state-verbose", [View(STREAMS, STATE)], 2),
        (
            "kafka-4.3.1-failover",
            "streams-groups-state",
            [View(SHARE, STATE), View(STREAMS, STATE)],
            1,
        ),
        ("kafka-4.3.1-failover", "consumer-groups-state-verbose", [View(CONSUMER, STATE)], 28),
    ],
)
def test_the_columns_say_what_was_printed(
    repository: Path, dump: str, name: str, views: list[View], rows: int
) -> None:
    found = saved(repository, dump, name)
    assert set(views) <= set(found.views)
    assert len(found.rows) == rows
    if len(views) == 1 and views[0].family == CONSUMER:
        assert found.views == views


def test_a_release_without_a_column_for_the_group_has_it_from_the_command(
    repository: Path,
) -> None:
    found = saved(repository, "kafka-2.0.1-v1", "consumer-groups-offsets")
    assert found.rows[0] == {
        "group": "<b>bold</b>",
        "topic": "stock",
        "partition": "2",
        "current_offset": "5",
        "log_end_offset": "81",
        "lag": "76",
        "consumer_id": None,
        "host": None,
        "client_id": None,
    }
    assert "audit-rare" in found.groups
    assert not any(row["group"] == "audit-rare" for row in found.rows)
    assert {row["group"] for row in found.rows} >= {
        "=cmd|' /C calc'!A0",
        "gruppe-ä \N{GRINNING FACE}",
    }
    assert found.errors == ["Consumer group 'break' does not exist."]


def test_each_group_may_have_columns_of_its_own(repository: Path) -> None:
    rows = saved(repository, "kafka-4.0.2-share", "consumer-groups-members").rows
    by_group = {row["group"]: row for row in rows}
    assert by_group["half-upgraded"]["upgraded"] in ("true", "false")
    assert by_group["mailer"]["group_instance_id"] == "mailer-a"
    assert "upgraded" not in by_group["mailer"]
    assert "group_instance_id" not in by_group["half-upgraded"]


def test_hostile_names_do_not_tear_rows_apart(repository: Path) -> None:
    torn = "tab\tand\nnewline"
    found = saved(repository, "kafka-4.3.1-story", "consumer-groups-state-verbose", torn, "other")
    (row,) = [each for each in found.rows if each["group"] == torn]
    assert (row["state"], row["members"]) == ("Empty", "0")
    groups = {each["group"] for each in found.rows}
    assert {"gruppe-ä \N{GRINNING FACE}", "\x1b[31mred\x1b[0m", "../../etc/passwd"} <= groups


def test_a_tool_that_failed_printed_no_rows(repository: Path) -> None:
    found = saved(repository, "kafka-4.3.1-story", "consumer-groups-offsets")
    assert found.views == []
    assert found.errors[0].startswith("Executing consumer group command failed")


def test_what_is_no_output_of_a_tool_has_no_rows() -> None:
    assert read_saved_output("once upon a time\nthere was a GROUP\n").views == []
    assert read_saved_output("").views == []


NAMES = (
    *("cr\rgone", "\x85nel", "\u2028line\u2029sep", "\xa0", "spaces  ", "nul\0byte"),
    *("new\nline", "offset-9223372036854775807"),
)
WIDE = 9223372036854775807


def printed(group: str, *cells: object) -> str:
    """Lines as Java's `%-15s %-10s %-15s %-15s %s` pads them; a wide group widens its column."""
    width = max(15, len(group))
    heads = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    lines = [heads, (group, *cells)]
    return "\n" + "\n".join(
        f"{first:<{width}} {second:<15} {third:<10} {fourth:<15} {fifth:<15} {last}"
        for first, second, third, fourth, fifth, last in (map(str, line) for line in lines)
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_group_is_found_again_whatever_its_name_is(name: str) -> None:
    text = printed("a", "orders", 0, 1, 2, 1) + "\n" + printed(name, "orders", 3, 5, 60, 55)
    rows = read_saved_output(text, ["a", *NAMES]).rows
    assert [row["group"] for row in rows] == ["a", name]
    assert (rows[1]["topic"], rows[1]["current_offset"], rows[1]["lag"]) == ("orders", "5", "55")


def test_a_carriage_return_may_have_been_saved_as_the_end_of_a_line() -> None:
    text = printed("cr\rgone", "orders", 3, 5, 60, 55).replace("\r", "\n")
    (row,) = read_saved_output(text, NAMES).rows
    assert (row["group"], row["topic"]) == ("cr\rgone", "orders")


def test_blanks_at_the_end_belong_to_a_name_only_if_no_other_group_has_it_without() -> None:
    text = printed("spaces", "orders", 3, 5, 60, 55)
    assert [row["group"] for row in read_saved_output(text, ["spaces", "spaces "]).rows] == [
        "spaces"
    ]


def test_a_number_wider_than_its_column_pushes_the_others_to_the_right() -> None:
    (row,) = read_saved_output(printed("g", "audit", 0, WIDE, 60, 60 - WIDE)).rows
    assert row["current_offset"] == str(WIDE)
    assert (row["log_end_offset"], row["lag"]) == ("60", str(60 - WIDE))
