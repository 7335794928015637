"""Real dumps under the law: rows that claim to be complete are as the whole dump has them.

`python -m tests.verdicts.lawful DUMP` does it with every kind of missing evidence, as a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.verdicts.altered_logs import CHECKPOINTS, without_terms
from tests.verdicts.asking import call
from tests.verdicts.evidence import copied
from tests.verdicts.held import CANNOT_TELL, RIGHT, Held
from tests.verdicts.law import Answers, hold_equal, hold_law
from tests.verdicts.lawful import (
    audited,
    changed_by,
    filtered,
    filtered_at_decode,
    filters_of,
    lawful,
    replayed,
    takes_of,
    terms_of,
    used_before,
)
from tests.verdicts.test_real_dumps import DUMPS, SMALL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


QUICK = ("cleaned, tombstones gone", "without leader-epoch-checkpoint")
NOTED = ("cleaned and noted, tombstones kept", "cleaned and noted, tombstones gone")
"""As a real cleaner does it, which notes how far it came."""
LONG = (
    *(f"without {name}" for name in CHECKPOINTS),
    "cleaned, tombstones kept",
    *NOTED,
    "one time of the offsets topic far ahead",
    "times stepped back in the metadata log",
)
FILTERS = filters_of(["by-hand"], ["parcels"])


EXPIRY = DUMPS.parent / "expiry" / "kafka-4.3.1-expiry"
EXPIRY_CELLS = (
    "cleaned, tombstones kept",
    "cleaned, tombstones gone",
    *NOTED,
    "one time of the offsets topic far ahead",
    "times stepped back in the offsets topic",
    "times stepped back in transactions",
)
EXPIRY_FILTERS = filters_of(["legacy-mixed", "tx-modern"], ["orders"])

SHARE = "kafka-4.0.2-share"
"""The dump of groups of all types but streams; that of 4.0 refuses what cleaning leaves of some."""
CELLS_OF_SHARE = (
    "cleaned, tombstones kept",
    "cleaned, tombstones gone",
    *NOTED,
    "one time of the offsets topic far ahead",
    "times stepped back in the offsets topic",
    "times stepped back in share state",
)
FILTERS_OF_SHARE = filters_of(["rolling-upgrade", "returns-desk"], ["orders"])

FAILOVER = "kafka-4.3.1-failover"
LAST_LEADERS_GONE = "without broker-2 and broker-3"
"""Of what broker 1 and the controller have, an election elsewhere may have cut back anything."""
DISKS = (
    LAST_LEADERS_GONE,
    "without broker-1",
    "without broker-2",
    "without broker-3",
    "without broker-1 and broker-2",
    "without broker-1 and broker-3",
)
WRONG_CLOCKS = ("clock of broker 1 an hour ahead", "clock of broker 1 an hour behind")


def _assert_lawful(helds: Mapping[str, Held]) -> None:
    faults = [fault for held in helds.values() for _, fault in held.faults]
    assert not faults, "\n".join(faults[:20])
    assert sum(held.count(RIGHT) for held in helds.values()) > 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(DUMPS / SMALL, tmp_path_factory.mktemp("whole") / "dump")


@pytest.fixture(scope="module")
def failover(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answers]:
    """The dump of three brokers, and the audit of all of it."""
    root = tmp_path_factory.mktemp("failover")
    return DUMPS / FAILOVER, audited(copied(DUMPS / FAILOVER, root / "dump"), root / "whole")


@pytest.fixture(scope="module")
def expiry(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answers]:
    """Some partitions of the dump in which offsets expire, and their audit."""
    root = tmp_path_factory.mktemp("expiry")
    dump = copied(EXPIRY, root / "dump")
    return dump, audited(dump, root / "whole")


@pytest.mark.usefixtures("one_session")
def test_state_and_history_are_those_of_the_whole_dump_or_marked(
    whole: Path, tmp_path: Path
) -> None:
    whole_state = replayed(whole, tmp_path / "whole")
    for evidence in QUICK:
        copy = copied(whole, tmp_path / evidence)
        takes_of(copy)[evidence](copy)
        _assert_lawful(hold_law(whole_state, replayed(copy, tmp_path / f"{evidence} replayed")))
    for name, options in FILTERS.items():
        part = replayed(whole, tmp_path / name, *options)
        _assert_lawful(hold_law(whole_state, part))
    # A folder that held less is as a fresh one; a filter at decoding as one at the replay.
    _assert_lawful(hold_equal(whole_state, replayed(whole, tmp_path / name)))
    assert call("decode", whole, *options, "--out", tmp_path / "decoded").code in {0, 3}
    part = replayed(tmp_path / "decoded", tmp_path / "of decoded")
    _assert_lawful(hold_law(whole_state, part))


@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize(
    "evidence", [NOTED[1], pytest.param("cleaned, tombstones gone", marks=pytest.mark.long)]
)
def test_state_at_an_instant_before_the_cleaner_came_is_that_of_the_whole_dump_or_marked(
    evidence: str, whole: Path, tmp_path: Path
) -> None:
    at = ("--as-of", "2026-11-21T09:20:02Z")
    copy = copied(whole, tmp_path / "copy")
    takes_of(copy)[evidence](copy)
    before, after = (
        replayed(dump, tmp_path / name, *at) for dump, name in ((whole, "whole"), (copy, "part"))
    )
    helds = hold_law(before, after)
    _assert_lawful(helds)
    assert helds["committed_offsets"].count(CANNOT_TELL) > 0


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("evidence", ["cleaned, tombstones gone", *NOTED])
def test_every_answer_at_an_instant_before_the_cleaner_came_is_that_of_all_or_marked(
    evidence: str, whole: Path, tmp_path: Path
) -> None:
    at = ("--as-of", "2026-11-21T09:20:02Z")
    copy = copied(whole, tmp_path / "copy")
    takes_of(copy)[evidence](copy)
    before = audited(whole, tmp_path / "whole", *at)
    after = audited(copy, tmp_path / "part", *at)
    _assert_lawful(hold_law(before, after, leave_out=changed_by(evidence)))


@pytest.mark.usefixtures("one_session")
def test_what_a_lost_leader_may_have_cut_back_is_marked_and_what_is_before_it_is_not(
    tmp_path: Path,
) -> None:
    whole = replayed(copied(DUMPS / FAILOVER, tmp_path / "dump"), tmp_path / "whole")
    copy = copied(DUMPS / FAILOVER, tmp_path / "part")
    takes_of(copy)[LAST_LEADERS_GONE](copy)
    helds = hold_law(whole, replayed(copy, tmp_path / "replayed"))
    _assert_lawful(helds)
    # Of partitions that the last leader led before, too, all that came from it then is certain.
    for name in ("group_events", "group_epochs", "membership_changes", "share_partition_epochs"):
        assert helds[name].count(RIGHT) > 0, name
    # No state is: anything may have come later.
    for name in ("groups", "members", "assignments", "share_batches"):
        assert helds[name].count(RIGHT) == 0, name
        assert helds[name].count(CANNOT_TELL) > 0, name


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("evidence", [*DISKS, *WRONG_CLOCKS, *NOTED])
def test_an_audit_with_less_or_with_a_wrong_clock_is_that_of_all_or_marked(
    evidence: str, failover: tuple[Path, Answers], tmp_path: Path
) -> None:
    dump, before = failover
    _assert_lawful(lawful(dump, evidence, tmp_path, before))


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("evidence", LONG)
def test_every_table_of_every_question_is_that_of_the_whole_dump_or_marked(
    evidence: str, whole: Path, tmp_path: Path
) -> None:
    before = audited(whole, tmp_path / "whole")
    _assert_lawful(lawful(DUMPS / SMALL, evidence, tmp_path, before))


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("evidence", EXPIRY_CELLS)
def test_why_offsets_went_is_as_the_whole_dump_has_it_or_marked(
    evidence: str, expiry: tuple[Path, Answers], tmp_path: Path
) -> None:
    dump, before = expiry
    _assert_lawful(lawful(dump, evidence, tmp_path, before))


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("name", EXPIRY_FILTERS)
@pytest.mark.parametrize("cell", [filtered, filtered_at_decode])
def test_why_the_offsets_asked_about_went_is_as_the_whole_dump_has_it_or_marked(
    cell: Callable[..., Mapping[str, Held]],
    name: str,
    expiry: tuple[Path, Answers],
    tmp_path: Path,
) -> None:
    dump, before = expiry
    _assert_lawful(cell(dump, EXPIRY_FILTERS[name], tmp_path, before))


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("cell", [filtered, filtered_at_decode])
def test_a_filter_changes_no_row_that_is_left(
    cell: Callable[..., Mapping[str, Held]], name: str, whole: Path, tmp_path: Path
) -> None:
    before = audited(whole, tmp_path / "whole")
    _assert_lawful(cell(whole, FILTERS[name], tmp_path, before))


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answers]:
    """The dump with share groups, and the audit of all of it."""
    root = tmp_path_factory.mktemp("share")
    dump = copied(DUMPS / SHARE, root / "dump")
    return dump, audited(dump, root / "whole")


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("evidence", CELLS_OF_SHARE)
def test_with_share_groups_less_evidence_changes_no_complete_row(
    evidence: str, share: tuple[Path, Answers], tmp_path: Path
) -> None:
    _, before = share
    _assert_lawful(lawful(DUMPS / SHARE, evidence, tmp_path, before))


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("name", FILTERS_OF_SHARE)
@pytest.mark.parametrize("cell", [filtered, filtered_at_decode])
def test_with_share_groups_a_filter_changes_no_row_that_is_left(
    cell: Callable[..., Mapping[str, Held]],
    name: str,
    share: tuple[Path, Answers],
    tmp_path: Path,
) -> None:
    dump, before = share
    _assert_lawful(cell(dump, FILTERS_OF_SHARE[name], tmp_path, before))


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("options", [(), *FILTERS.values()], ids=" ".join)
def test_a_folder_that_was_used_before_is_as_a_fresh_one(
    options: Sequence[str], whole: Path, failover_dump: Path, tmp_path: Path
) -> None:
    before = audited(whole, tmp_path / "whole")
    other = whole if options else failover_dump
    _assert_lawful(used_before(whole, other, options, tmp_path, before))


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
def test_without_the_log_of_a_leader_between_two_elections(
    failover_dump: Path, tmp_path: Path
) -> None:
    before = audited(copied(failover_dump, tmp_path / "dump"), tmp_path / "whole")
    between = without_terms(terms_of(before))
    assert between
    for evidence in between:
        folder = tmp_path / evidence
        folder.mkdir()
        _assert_lawful(lawful(failover_dump, evidence, folder, before))
