"""The table `rebalance_causes`: what led to each epoch, as far as records tell.

The client-side assignment proposal names what makes a group rebalance: members that come and go,
its leader among them; a subscription that changes; a topic that grows, which the leader sees; a new
assignment strategy once every member supports it; a coordinator that fails; and an assignment that
fails. The last leaves no record: only that generations were joined and never synced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.contract_table import table_of
from schemas.rebalance_causes import coordinator_failures, rebalance_causes

if TYPE_CHECKING:
    Place = tuple[int, str, int]
    """Partition of the internal topic, group and offset of an epoch's first record."""
    _Life = tuple[int, str, int, int]
    """Partition of the internal topic, group, life and epoch."""

(
    LEADER_LOST,
    PROTOCOL_SWITCH,
    TOPIC_GREW,
    SUBSCRIPTION,
    MEMBERS,
    COORDINATOR,
    NOT_SYNCED,
    NOTHING_ASSIGNED,
    NONE_RECORDED,
) = rebalance_causes()
CLASSIC, CONSUMER, STABLE = "classic", "consumer", "Stable"
_WHO: Final = {
    "joined": "joined",
    "left": "left or timed out",
    "restarted": "restarted",
    "fenced": "fenced",
}
_MOST_NAMED: Final = 3
_EVER: Final = -1


def causes(rebalances: pa.Table, epochs: pa.Table, held: pa.Table) -> pa.Table:
    """Return the table, in the order of `rebalances`.

    Args:
        rebalances: The table `rebalances`: of these epochs.
        epochs: The table `group_epochs`, of all times.
        held: The table `assignment_history`, of all times.
    """
    before = _before(epochs)
    grown = _grown(held)
    rows = []
    for row in rebalances.to_pylist():
        place = (row["coordinator_partition"], row["group_id"], row["from_offset"])
        now, last = before.get(place, (None, None))
        life = (place[0], place[1], row["life"], row["epoch"])
        found = list(_of(row, now, last, grown.get(life)))
        rows += [
            {**row, "cause": cause, "detail": detail, "is_told": is_told}
            for cause, detail, is_told in found or [(NONE_RECORDED, None, row["complete"])]
        ]
    return table_of("rebalance_causes", rows)


_Epoch = Mapping[str, Any]


def _before(epochs: pa.Table) -> dict[Place, tuple[_Epoch, _Epoch | None]]:
    """Return each epoch with the one before it in the same life."""
    keys = ("coordinator_partition", "group_id", "life", "from_offset")
    ordered = epochs.sort_by([(each, "ascending") for each in keys]).to_pylist()
    found: dict[Place, tuple[_Epoch, _Epoch | None]] = {}
    last: _Epoch | None = None
    for row in ordered:
        if last is not None and any(row[each] != last[each] for each in keys[:3]):
            last = None
        place = (row["coordinator_partition"], row["group_id"], row["from_offset"])
        found[place] = (row, last)
        last = row
    return found


def _of(
    row: Mapping[str, Any], now: _Epoch | None, last: _Epoch | None, grown: str | None
) -> Iterator[tuple[str, str | None, bool]]:
    """Return the causes of one epoch, each with its words and whether records show it."""
    is_whole = bool(row["complete"]) and not row["missing_is_compacted"]
    if now is not None and last is not None:
        yield from _between(row, now, last, is_whole=is_whole)
        if grown is not None:
            yield TOPIC_GREW, grown, is_whole
    if row["subscription_changed"]:
        yield SUBSCRIPTION, _named(row["subscription_changed"]), True
    came = [f"{did}: {_named(row[name])}" for name, did in _WHO.items() if row[name]]
    if came:
        yield MEMBERS, "; ".join(came), True
    if row["coordinator_change"] is not None:
        said = coordinator_failures()[row["coordinator_change"]]
        # Cases that leave the same records cannot be told from each other.
        yield COORDINATOR, said.leaves, len(said.cases) <= 1
    if row["missing_before"]:
        yield NOT_SYNCED, f"{row['missing_before']} generations left no record", False
    if now is not None and _gave_nothing(row, now):
        yield NOTHING_ASSIGNED, f"{row['member_count']} members", False


def _between(
    row: Mapping[str, Any], now: _Epoch, last: _Epoch, *, is_whole: bool
) -> Iterator[tuple[str, str | None, bool]]:
    leader = last["leader"]
    is_whole = is_whole and not row["missing_before"]
    # A static leader that restarts is the leader still, under another member id. The last member
    # leads, too: when it goes there is nobody to lead.
    if now["leader"] is not None and leader in {*row["left"], *row["fenced"]}:
        yield LEADER_LOST, f"{leader}; the leader is {now['leader']} now", is_whole
    was, is_now = last["protocol"], now["protocol"]
    if was and is_now and was != is_now:
        yield PROTOCOL_SWITCH, f"{was} to {is_now}", is_whole


def _gave_nothing(row: Mapping[str, Any], now: _Epoch) -> bool:
    found: bool = (
        row["group_type"] == CLASSIC
        and now["protocol_type"] == CONSUMER
        and row["state"] == STABLE
        and row["member_count"] > 0
        and now["partitions_assigned"] == 0
    )
    return found


def _named(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    listed = ", ".join(names[:_MOST_NAMED])
    return f"{listed} and {more} more" if more > 0 else listed


def _grown(held: pa.Table) -> dict[_Life, str]:
    """Return by epoch the topics of which it was the first to assign a partition beyond all others.

    A classic group's records, and target assignments of the others, have all partitions of a topic
    at once: one beyond those that the group had of the topic before was not there then.
    """
    kind = pc.if_else(pc.equal(held["group_type"], CLASSIC), "current", "target")
    chosen = held.filter(pc.and_(pc.equal(held["kind"], kind), pc.is_valid(held["topic"])))
    # What may have begun earlier is taken to have been there from the beginning.
    since = pc.if_else(chosen["from_is_bound"], _EVER, chosen["from_epoch"])
    keys = ["coordinator_partition", "group_id", "life", "topic"]
    grouped = chosen.append_column("since", since).group_by([*keys, "partition"])
    order = [(each, "ascending") for each in (*keys, "since_min", "partition")]
    first = grouped.aggregate([("since", "min")]).sort_by(order)
    found: dict[_Life, dict[str, list[int]]] = {}
    for row, is_beyond in zip(first.to_pylist(), _beyond(first, keys), strict=True):
        if is_beyond:
            place = (*(row[each] for each in keys[:3]), row["since_min"])
            found.setdefault(place, {}).setdefault(row["topic"], []).append(row["partition"])
    return {
        place: "; ".join(f"{topic} has {_numbers(new)} now" for topic, new in topics.items())
        for place, topics in found.items()
    }


def _beyond(first: pa.Table, keys: list[str]) -> list[bool]:
    """Return which partitions lie beyond all that were seen of their topic in earlier epochs."""
    found, whose, epoch, most, before = [], None, None, -1, -1
    columns = [first[each].to_pylist() for each in (*keys, "since_min", "partition")]
    for *key, since, partition in zip(*columns, strict=True):
        if key != whose:
            whose, epoch, most, before = key, since, -1, -1
        if since != epoch:
            epoch, before = since, most
        found.append(before >= 0 and partition > before)
        most = max(most, partition)
    return found


def _numbers(partitions: list[int]) -> str:
    listed = ", ".join(map(str, partitions[:_MOST_NAMED]))
    more = len(partitions) - _MOST_NAMED
    noun = "partition" if len(partitions) == 1 else "partitions"
    return f"{noun} {listed}" + (f" and {more} more" if more > 0 else "")
