"""Elections of coordinators that may have lost commits, and whether the dump can show it.

An unclean election makes another log the truth. What was lost is in the log of the leader before:
where that log is in the dump and ends before the election, nothing of it is hidden. Where it is not
there, or followed the new leader afterwards and was cut back to its log, nothing tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from analytics.dump.copies.leadership import NOBODY, Registered
from analytics.epoch_times import iso_time, milliseconds_of, time_of
from schemas import COORDINATOR_TOPICS

if TYPE_CHECKING:
    from analytics.dump.copies.leadership import Leadership
    from schemas.manifest import Manifest, PartitionEntry, UnjudgedElectionEntry


@dataclass(frozen=True)
class Election:
    """A leader of one internal partition.

    Attributes:
        leader_epoch: Its epoch.
        leader: The broker; None for nobody.
        at: When it was elected; None where not known.
        takes_over_from: The last leader before where that was another broker and the election was
            unclean, else None.
        former_epoch: The last epoch of that leader.
    """

    leader_epoch: int
    leader: int | None
    at: datetime | None
    takes_over_from: int | None = None
    former_epoch: int | None = None


@dataclass(frozen=True)
class Unjudged:
    """An election of which the dump cannot tell whether it lost commits.

    Attributes:
        at: When it was; None where not known.
        reason: Why it cannot be told.
        leader_epoch: Of the leader that was elected; None for any there may have been.
        is_unclean: The metadata log shows that it was unclean; else it may have been.
    """

    at: datetime | None
    reason: str
    leader_epoch: int | None = None
    is_unclean: bool = False


@dataclass(frozen=True)
class Copy:
    """A broker's log of one internal partition.

    Attributes:
        node_id: The broker; None where the dump does not say.
        last_epoch: The last leader epoch in it; None where it has none.
        lacks: Which of its records the dump lacks, in a sentence; None where it is whole.
    """

    node_id: int | None
    last_epoch: int | None
    lacks: str | None = None


@dataclass(frozen=True)
class Evidence:
    """What the dump has of one internal partition.

    Attributes:
        elections: In order, as the metadata log has them; empty where there is none.
        is_replicated: Whether it ever had more than one replica; None where not known.
        copies: Its logs.
        epochs: Leader epochs that its surviving log names, and when the first record of each was
            written (None where there is no such record); None where records carry no epochs.
        lost: Leader epochs of lost lines: the last of the line, and the one that replaced it (None
            where nobody wrote in it).
        uncertain: Why some of the elections may have been later than the instant; None where both
            cuts of the metadata log have the same.
    """

    elections: Sequence[Election] = ()
    is_replicated: bool | None = None
    copies: Sequence[Copy] = ()
    epochs: Mapping[int, datetime | None] | None = None
    lost: Sequence[tuple[int | None, int | None]] = ()
    uncertain: str | None = None

    def unjudged(self) -> Unjudged | None:
        """Return the last election of which nothing tells what it lost; None where all are told."""
        return max(self.every_unjudged(), key=_place, default=None)

    def every_unjudged(self) -> list[Unjudged]:
        """Return the elections of which nothing tells what they lost."""
        if self.is_replicated is False:
            return []
        known = [self._why(each) for each in self.elections]
        found = [*(each for each in known if each is not None), *self._outside_the_metadata_log()]
        return found if self.uncertain is None else [*found, Unjudged(None, self.uncertain)]

    def elected_at(self, leader_epoch: int | None) -> datetime | None:
        """Return when the leader of an epoch was elected, by the metadata log."""
        return next((e.at for e in self.elections if e.leader_epoch == leader_epoch), None)

    def _why(self, election: Election) -> Unjudged | None:
        former, may = election.takes_over_from, "an unclean election may have lost commits"
        if former is None:
            return None
        logs = [each for each in self.copies if each.node_id == former]
        lacking = [each.lacks for each in logs if each.lacks is not None]
        if lacking:
            reason = f"{may}: in the log of broker {former}, the leader before, {lacking[0]}"
            return Unjudged(election.at, reason, election.leader_epoch, is_unclean=True)
        ended_before = any((each.last_epoch or 0) < election.leader_epoch for each in logs)
        if ended_before or self._is_shown_by_a_line(election.leader_epoch, election.former_epoch):
            return None
        what = "was cut back to the new leader's afterwards" if logs else "is not in the dump"
        reason = f"{may}: the log of broker {former}, the leader before, {what}"
        return Unjudged(election.at, reason, election.leader_epoch, is_unclean=True)

    def _outside_the_metadata_log(self) -> list[Unjudged]:
        """Judge the elections that no metadata log tells of."""
        if self.epochs is None and not self.elections:
            reason = "an unclean election may have lost commits: no leader epochs are recorded"
            return [Unjudged(None, reason)]
        untold = {
            epoch: at
            for epoch, at in (self.epochs or {}).items()
            if epoch > 0 and not self._is_told(epoch) and not self._is_shown_by_a_line(epoch)
        }
        if self.elections and self.elections[0].leader_epoch > 0:
            untold.setdefault(self.elections[0].leader_epoch, self.elections[0].at)
        why = "the dump has no metadata log"
        if self.elections:
            why = "the metadata log does not tell of all of them"
        reason = f"leaders changed, and an unclean election may have lost commits: {why}"
        return [Unjudged(at, reason, epoch) for epoch, at in sorted(untold.items())]

    def _is_told(self, epoch: int) -> bool:
        """Return whether the metadata log tells how a leader was elected."""
        return bool(
            self.elections
            and self.elections[0].leader_epoch < epoch <= self.elections[-1].leader_epoch
        )

    def _is_shown_by_a_line(self, epoch: int, former_epoch: int | None = None) -> bool:
        """Return whether a lost line shows what an election lost.

        Args:
            epoch: Of the leader that was elected.
            former_epoch: Of the leader before, where it is known: a line of an older leader shows
                nothing of what that one wrote.
        """
        return any(
            (before is None or before < epoch)
            and (after is None or epoch <= after)
            and (before is None or former_epoch is None or before >= former_epoch)
            for before, after in self.lost
        )


def _place(unjudged: Unjudged) -> float:
    return float("inf") if unjudged.leader_epoch is None else unjudged.leader_epoch


def elections_of(led: Iterable[Leadership]) -> list[Election]:
    """Return the elections of a partition; `led` are its leader epochs, in order."""
    found: list[Election] = []
    before: int | None = None
    former: int | None = None
    for each in led:
        at = time_of(each.since)
        leader = None if each.leader == NOBODY else each.leader
        is_loss = each.is_unclean and leader is not None and before not in (None, leader)
        found.append(
            Election(
                each.epoch, leader, at, before if is_loss else None, former if is_loss else None
            )
        )
        if leader is not None:
            before, former = leader, each.epoch
    return found


def with_unjudged_elections(
    manifest: Manifest, registered: Mapping[tuple[str, int], Registered]
) -> Manifest:
    """Return a manifest whose partitions name the elections that may have lost commits unseen.

    Each partition that is decoded has `unjudged_elections`: `leader_epoch`, `at` (null where not
    known), `first_offset` (from which on the leader before may have had other records), `why` and
    `is_unclean` (it is known to have been unclean).

    Args:
        manifest: Of a dump that was decoded.
        registered: As `analytics.decode.elections.registered_partitions` returns it.
    """
    rows: list[PartitionEntry] = [
        {**row, "unjudged_elections": _unjudged_of(manifest, row, registered)}
        if row["topic"] in COORDINATOR_TOPICS and row.get("is_leading", True)
        else row
        for row in manifest["partitions"]
    ]
    return {**manifest, "partitions": rows}


def _unjudged_of(
    manifest: Manifest, row: PartitionEntry, registered: Mapping[tuple[str, int], Registered]
) -> list[UnjudgedElectionEntry]:
    key = row["topic"], row["partition"]
    told = registered.get(key, Registered())
    epochs = [each["epoch"] for each in row["leader_epochs"]]
    evidence = Evidence(
        elections=elections_of(told.led),
        is_replicated=told.is_replicated,
        copies=copies_of(manifest, *key),
        epochs=dict.fromkeys(epochs) if epochs else None,
        lost=[
            (each["lost_leader_epoch"], each["surviving_leader_epoch"])
            for each in manifest["divergences"]
            if (each["topic"], each["partition"]) == key
        ],
    )
    return [
        {
            "leader_epoch": each.leader_epoch,
            "at": None if each.at is None else iso_time(milliseconds_of(each.at)),
            "first_offset": _first_offset(row, each.leader_epoch),
            "why": each.reason,
            "is_unclean": each.is_unclean,
        }
        for each in evidence.every_unjudged()
    ]


def _first_offset(row: PartitionEntry, leader_epoch: int | None) -> int:
    """Return from which offset on the leader before may have had other records than an elected one.

    Without leader epochs that is any; one that wrote nothing was elected at the end of the log.
    """
    if not row["leader_epochs"]:
        return int(row["first_offset"] or 0)
    firsts = [
        each["first_offset"]
        for each in row["leader_epochs"]
        if leader_epoch is not None and each["epoch"] >= leader_epoch
    ]
    return int(min(firsts, default=row["end_offset"]) or 0)


def copies_of(manifest: Manifest, topic: str, partition: int) -> list[Copy]:
    """Return the logs of an internal partition that a manifest names."""
    nodes: dict[str | None, int | None] = {
        each["name"]: each.get("node_id") for each in manifest["copies"]
    }
    return [
        Copy(
            nodes.get(each.get("copy")),
            max((epoch["epoch"] for epoch in each.get("leader_epochs") or ()), default=None),
            each.get("lacks"),
        )
        for each in manifest["partitions"]
        if (each["topic"], each["partition"]) == (topic, partition)
    ]
