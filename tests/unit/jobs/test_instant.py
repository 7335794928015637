"""TIME as people write it."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from analytics.replay.dump.choices import BeforeEnd, iso_time
from jobs.cli.options.state import Instant

INSTANT = Instant()
QUARTER_PAST_EIGHT = 1_795_248_900_000


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T08:15:00Z",
        "2026-11-21T08:15:00.000Z",
        "2026-11-21 08:15:00+00:00",
        "2026-11-21T09:15:00+01:00",
        "20261121T081500Z",
        "1795248900000",
    ],
)
def test_one_instant_can_be_written_in_many_ways(text: str) -> None:
    assert INSTANT.convert(text, None, None) == QUARTER_PAST_EIGHT


def test_milliseconds_are_kept_and_smaller_units_cut_off() -> None:
    assert INSTANT.convert("2026-11-21T08:15:00.123999Z", None, None) == QUARTER_PAST_EIGHT + 123


def test_before_1970_is_before_zero() -> None:
    assert INSTANT.convert("1969-12-31T23:59:59.999Z", None, None) == -1


@pytest.mark.parametrize("text", ["end", "END", " end "])
def test_the_end_of_the_dump_has_no_number(text: str) -> None:
    assert INSTANT.convert(text, None, None) is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("-24h", 86_400), ("-90m", 5_400), ("-7d", 604_800), (" -30s ", 30)]
)
def test_a_time_can_be_relative_to_the_end_of_the_dump(text: str, seconds: int) -> None:
    assert INSTANT.convert(text, None, None) == BeforeEnd(seconds * 1000)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "12:30", "1e12", "NaN", "-24", "24h"]
)
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        INSTANT.convert(text, None, None)
    assert refused.value.message == (
        f"invalid time {text!r}: write 2026-11-21T08:15:00Z, epoch milliseconds, -24h "
        f"(before the end of the dump) or end"
    )


def test_a_time_without_a_zone_is_utc_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    context = click.Context(click.Command("any"))
    assert INSTANT.convert("2026-11-21T08:15:00", None, context) == QUARTER_PAST_EIGHT
    assert "taken as 2026-11-21T08:15:00.000Z" in capsys.readouterr().err


def test_times_are_printed_in_utc_with_milliseconds() -> None:
    assert iso_time(datetime(2026, 11, 21, 8, 15, tzinfo=UTC)) == "2026-11-21T08:15:00.000Z"
