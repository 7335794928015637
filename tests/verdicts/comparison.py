"""A dump with some of its evidence taken away: replayed, asked, and held against the truth."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.verdicts.asking import Answer, ask, call
from tests.verdicts.changes import hold_diff, hold_restore
from tests.verdicts.evidence import (
    EVIDENCE,
    IN_TURN,
    METADATA,
    OF_THE_FAILOVER,
    OFFSETS,
    copied,
    partitions,
    rows_instead,
    segments,
)
from tests.verdicts.happened import LOST, Values
from tests.verdicts.held import Held, Told, hold_timeline, iso
from tests.verdicts.held_members import FOREVER, hold_balance, hold_rebalances
from tests.verdicts.states import hold_list, hold_offsets, hold_removals
from tests.verdicts.truth import Truth, home_of
from tests.verdicts.witness import Key

ROWS = "rows instead of logs"
ASSUMING = "rows, with --assume no-transactions"
AS_OF = "as of"
FAILOVER = "kafka-4.3.1-failover"
DEAD_ALONE = "with the dead broker's disk alone"


def evidences(dump: Path, truth: Truth) -> list[str]:
    """Return what can be taken away from a dump, and an instant that it is asked about."""
    names = list(EVIDENCE)
    if not any(len(segments(each)) > 1 for each in partitions(dump, OFFSETS)):
        names.remove("lost segments")
    if not partitions(dump, METADATA):
        names.remove("no metadata log")
    names += OF_THE_FAILOVER if truth.dump == FAILOVER else [ROWS]
    return [*names, f"{AS_OF} {iso(sorted(truth.instants)[2])}"]


def prepared(dump: Path, evidence: str, folder: Path) -> tuple[Path, list[str]]:
    """Return what commands are given, and options that go with it."""
    if evidence.startswith(AS_OF):
        return dump, ["--as-of", evidence.removeprefix(AS_OF).strip()]
    shutil.rmtree(folder, ignore_errors=True)
    copy = copied(dump, folder)
    if evidence == ROWS:
        rows = rows_instead(copy, folder / "rows")
        for each in copy.iterdir():
            if each != rows.parent:
                shutil.rmtree(each)
        return rows, []
    take = {**EVIDENCE, **OF_THE_FAILOVER}[evidence]
    if take is not None:
        take(copy)
    return copy, []


def compared(dump: Path, truth: Truth, evidence: str, scratch: Path) -> dict[str, Held]:
    """Replay a dump without some of its evidence and hold what commands say against the truth.

    A workspace that is already there is asked.
    """
    workspace, earlier = scratch / "workspace", scratch / "earlier"
    at = middle_of(truth) if _has_two_instants(evidence) else None
    source, options = prepared(dump, evidence, scratch / "dump")
    _replay(source, options, workspace)
    end = _end(truth, evidence)
    helds = hold_workspace(workspace, *_known(truth, end), end)
    if at is not None:
        _replay(source, ["--as-of", iso(at)], earlier)
        helds |= hold_earlier(earlier, workspace, truth, at, scratch / "restored")
    return helds


def hold_earlier(
    earlier: Path, workspace: Path, truth: Truth, at: int, folder: Path
) -> dict[str, Held]:
    """Ask a replay at an earlier instant everything, and what changed since."""
    then = truth.instants[at]
    helds = {
        f"{name}, {AS_OF} {iso(at)}": held
        for name, held in hold_workspace(earlier, until(truth, at), then, at).items()
    }
    return helds | hold_two_states(earlier, workspace, truth, then, folder)


def _replay(source: Path, options: Sequence[str], workspace: Path) -> None:
    if (workspace / "manifest.json").exists():
        return
    replayed = call("replay", source, *options, "--out", workspace)
    assert replayed.code in {0, 3}, (source, options, replayed)


def _has_two_instants(evidence: str) -> bool:
    """Return whether the end of what is left is the end of the dump."""
    return not evidence.startswith(AS_OF) and evidence != DEAD_ALONE


def middle_of(truth: Truth) -> int:
    """Return the instant that the end is compared with: what was lost since is not little."""
    return sorted(truth.instants)[2]


def hold_two_states(
    earlier: Path, workspace: Path, truth: Truth, then: Mapping[Key, Values], folder: Path
) -> dict[str, Held]:
    """Ask what changed between two replays of a dump and what can be restored; hold it."""
    diff = ask("diff", earlier, workspace)
    restore = ask("restore", earlier, "--against", workspace, "--group", "*", "--out", folder)
    changed = [row for row in rows_of(diff) if row["kind"] == "offset"]
    planned = [row for row in rows_of(restore) if row["kind"] == "offset"]
    end = truth.end_values
    return {
        "diff": hold_diff(truth, then, end, changed, is_untold=diff.is_untold),
        "restore": hold_restore(then, end, planned, is_untold=restore.is_untold),
    }


def by_evidence(dump: Path, evidence: str, helds: Mapping[str, Held]) -> dict[str, list[Held]]:
    """Return what is held by what was taken away from the partition that a group is in."""
    names = IN_TURN.get(evidence)
    if names is None:
        return {evidence: list(helds.values())}
    numbers = {int(each.name.rpartition("-")[2]) for each in partitions(dump, OFFSETS)}
    count = max(numbers) + 1
    return {
        name: [
            held.of(lambda group, turn=turn: home_of(group, count) % len(names) == turn)  # type: ignore[misc]
            for held in helds.values()
        ]
        for turn, name in enumerate(names)
    }


def hold_workspace(
    workspace: Path, truth: Truth, offsets: Mapping[Key, Values], at: int | None = None
) -> dict[str, Held]:
    """Ask a workspace what every command says, and hold it against the truth.

    Args:
        workspace: A replay.
        truth: What was true at its instant.
        offsets: What was in force then.
        at: The instant, in epoch milliseconds; None: the end of the dump.
    """
    timeline = ask("timeline", workspace, "--group", "*")
    describe = ask("describe", workspace, "--offsets")
    listed = ask("list", workspace)
    judged = ask("expiration", workspace)
    lag = ask("lag", workspace)
    rebalances = ask("rebalances", workspace)
    balance = ask("balance", workspace)
    return {
        "lag": hold_offsets(offsets, rows_of(lag), is_untold=lag.is_untold),
        "timeline": hold_timeline(truth, told_of(timeline)),
        "describe": hold_offsets(offsets, rows_of(describe), is_untold=describe.is_untold),
        "list": hold_list(truth, rows_of(listed), is_untold=listed.is_untold),
        "expiration": hold_removals(
            truth, judged.told.get("removals", []), is_untold=judged.is_untold
        ),
        "rebalances": hold_rebalances(
            truth.members,
            rows_of(rebalances),
            FOREVER if at is None else at,
            is_untold=rebalances.is_untold,
            churn=rebalances.told.get("churn", []),
        ),
        "balance": hold_balance(truth.sizes(at), rows_of(balance), is_untold=balance.is_untold),
    }


def told_of(answer: Answer) -> Told:
    """Return the verdicts of a timeline."""
    rows = answer.told.get("verdicts", [])
    said = " ".join(map(str, answer.told.get("cannot_tell", ()))) + answer.said
    compacted = {
        each["partition"]: each["before_time"] for each in answer.told.get("compacted", ())
    }
    return Told(rows, answer.is_untold, said, compacted)


def rows_of(answer: Answer) -> Sequence[Mapping[str, Any]]:
    """Return the rows of an answer."""
    rows: Sequence[Mapping[str, Any]] = answer.told.get("rows", [])
    return rows


def _end(truth: Truth, evidence: str) -> int | None:
    """Return the instant at which what is left ends; None: where the dump does."""
    if evidence.startswith(AS_OF):
        return next(each for each in truth.instants if evidence.endswith(iso(each)))
    if evidence == DEAD_ALONE:
        return max(each for each in truth.instants if each < truth.elected)
    return None


def _known(truth: Truth, end: int | None) -> tuple[Truth, Mapping[Key, Values]]:
    """Return what is true at the end of what is left, and what was in force then."""
    if end is None:
        return truth, truth.end_values
    return until(truth, end), truth.instants[end]


def until(truth: Truth, at: int) -> Truth:
    """Return what was true at an instant: what was under way then need not be told.

    Before an election no line is lost.
    """
    past = [each for each in truth.happenings if each.at[0] <= at]
    is_lost = any(each.what == LOST for each in past)
    certain = [
        replace(
            each,
            is_certain=each.is_certain and each.at[1] <= at,
            on_lost_line=each.on_lost_line and is_lost,
        )
        for each in past
    ]
    in_force = {
        key: next(iter(values)) if len(values) == 1 else None
        for key, values in truth.instants[at].items()
    }
    return truth.with_happenings(certain).with_end(in_force)
