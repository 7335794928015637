"""By which number of partitions clients look for a group, and what lies elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from analytics.replay.log.topic_homes import (
    NOT_SEEN,
    PLACES,
    UNDISPUTED,
    Era,
    TopicHomes,
    disputed_keys,
    eras_of,
    home_of,
    homes_at,
    with_misplaced,
)

GROUPS = [f"group-{number}" for number in range(12)] + ["gruppe-ä", "😀-🚀", "polygenelubricants"]
START = datetime(2026, 11, 25, tzinfo=UTC)


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def placed(*rows: tuple[str, int, int, int]) -> pl.DataFrame:
    """Return `PLACES` of groups, each with a partition and the minutes of its commits."""
    told = pl.DataFrame(
        [(key, number, at(first), at(last), at(last)) for key, number, first, last in rows],
        schema=PLACES,
        orient="row",
    )
    return told.group_by("key", "partition").agg(
        pl.col("first_at").min(), pl.col("last_at", "last_value_at").max()
    )


def by_number(partitions: int, first: int, last: int) -> list[tuple[str, int, int, int]]:
    return [(group, home_of(group, partitions), first, last) for group in GROUPS]


GROWN = placed(*by_number(4, 0, 10), *by_number(9, 20, 30))
GROWN_TWICE = placed(*by_number(3, 0, 10), *by_number(7, 20, 30), *by_number(16, 40, 50))


def test_groups_at_home_need_no_eras() -> None:
    assert eras_of(placed(*by_number(50, 0, 10)), (), 50) == ()


def test_commits_that_go_on_elsewhere_show_the_new_number_and_the_one_before() -> None:
    assert eras_of(GROWN, (), 9) == (Era(4, None, at(10)), Era(9, at(20), None))


def test_a_topic_that_grew_twice_has_three_eras() -> None:
    eras = eras_of(GROWN_TWICE, (), 16)
    assert [each.partitions for each in eras] == [3, 7, 16]
    assert [(each.first, each.last) for each in eras] == [
        (None, at(10)),
        (at(20), at(30)),
        (at(40), None),
    ]


def test_missing_directories_do_not_hide_the_number() -> None:
    eras = eras_of(placed(*by_number(50, 0, 10), *by_number(60, 20, 30)), (), 54)
    assert [each.partitions for each in eras] == [50, 60]


@pytest.mark.parametrize(
    ("minute", "expected"),
    [(5, (4, None)), (10, (4, None)), (15, (4, 9)), (20, (9, None)), (None, (9, None))],
)
def test_between_the_last_commit_by_one_number_and_the_first_by_the_next_none_is_certain(
    minute: int | None, expected: tuple[int, int | None]
) -> None:
    homes = homes_at(eras_of(GROWN, (), 9), None if minute is None else at(minute))
    assert (homes.partitions, homes.perhaps) == expected


def test_an_alteration_without_a_restart_leaves_two_numbers_in_doubt() -> None:
    homes = homes_at((Era(50, None, at(10)), Era(60, NOT_SEEN)), None)
    assert (homes.partitions, homes.perhaps) == (50, 60)


def test_clients_that_moved_show_the_restart_that_the_metadata_log_does_not() -> None:
    named = (Era(4, None, at(12)), Era(9, NOT_SEEN))
    assert eras_of(GROWN, named, 9)[1] == Era(9, at(20))
    assert eras_of(placed(*by_number(4, 0, 10)), named, 9)[1] == Era(9, NOT_SEEN)


def test_a_copy_of_a_log_in_another_directory_is_no_era() -> None:
    mine = [("group-1", home_of("group-1", 50), 0, 10), ("group-1", 3, 0, 10)]
    places = placed(*mine, ("group-2", home_of("group-2", 50), 0, 10))
    (era,) = eras_of(places, (), 50)
    assert era == Era(50)
    homes = with_misplaced(homes_at((era,), None), places)
    assert homes == TopicHomes(50, misplaced={3: 1})


def test_an_older_copy_of_a_log_is_not_the_home() -> None:
    places = placed(("group-1", home_of("group-1", 50), 0, 30), ("group-1", 3, 0, 10))
    assert eras_of(places, (), 50)[-1].partitions == 50


def test_where_no_number_explains_all_places_nothing_tells_which_of_several_counts() -> None:
    nowhere = [
        (group, (home_of(group, 50) + step) % 50, minute, minute)
        for group in GROUPS[:2]
        for step, minute in ((1, 3), (2, 5))
    ]
    moved = [*by_number(50, 0, 10), (GROUPS[3], (home_of(GROUPS[3], 50) + 1) % 50, 0, 2)]
    places = placed(*(each for each in moved if each[0] not in GROUPS[:2]), *nowhere)

    (era,) = eras_of(places, (), 50)
    disputed = disputed_keys(places, (era,))
    homes = with_misplaced(TopicHomes(era.partitions, disputed=disputed.chosen), places)

    assert (era.partitions, disputed.is_number_guessed) == (50, True)
    in_several = {*GROUPS[:2], GROUPS[3]}
    assert {each for each in GROUPS if homes.is_disputed(each)} == in_several
    kept = {each: homes.home(each) for each in GROUPS}
    at_home = {each: home_of(each, 50) for each in GROUPS if each not in GROUPS[:2]}
    # Each is read in one place, the one with its last commit where none is at home.
    last = {each: (home_of(each, 50) + 2) % 50 for each in GROUPS[:2]}
    assert kept == at_home | last
    assert (sum(homes.misplaced.values()), homes.unreachable) == (3, 0)


def test_of_a_group_that_lies_where_no_number_put_it_nothing_tells_whether_it_counts() -> None:
    stray = ("group-0", (home_of("group-0", 9) + 3) % 9, 5, 5)
    assert stray[1] not in {home_of("group-0", 4), home_of("group-0", 9)}
    places = pl.concat([GROWN.filter(pl.col("key") != "group-0"), placed(stray)])
    eras = eras_of(places, (), 9)
    disputed = disputed_keys(places, eras)
    assert [each.partitions for each in eras] == [4, 9]
    assert (list(disputed.chosen.values()), disputed.is_number_guessed) == ([stray[1]], False)
    assert disputed_keys(GROWN, eras_of(GROWN, (), 9)) == UNDISPUTED


def test_groups_that_lie_elsewhere_alone_are_counted() -> None:
    places = GROWN.filter(~((pl.col("key") == "group-0") & (pl.col("first_at") == at(20))))
    assert home_of("group-0", 4) != home_of("group-0", 9)
    homes = with_misplaced(homes_at(eras_of(places, (), 9), None), places)
    assert homes.unreachable == 1
    moved = [each for each in GROUPS if home_of(each, 4) != home_of(each, 9)]
    assert sum(homes.misplaced.values()) == len(moved)
