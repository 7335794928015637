"""The limits of share groups: what is set, by the dump, brokers' files and `--config`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from analytics.gaps.internal_topics import partition_count
from analytics.gaps.workspace_filters import left_out_of
from analytics.questions.share.limits import LimitSettings, LimitValue, Seen, share_limits_found
from analytics.questions.share.settings import BROKER_CONFIG, DYNAMIC
from schemas import SHARE_GROUP_STATE
from schemas.share_limits import group_type_setting, share_limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from analytics.gaps.group_selection import GroupSelection
    from analytics.replayed.given_settings import Settings
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_BACKLOG = {"delivery_count": "max_delivery_count", "window_offsets": "window_offsets"}


def limits_of(state: ReplayedWorkspace, selected: GroupSelection, backlog: pa.Table) -> pa.Table:
    """Return the table `share_limits`.

    Args:
        state: Says the instant, settings and release.
        selected: The share groups that are asked about.
        backlog: The table `share_backlog`.
    """
    tables, groups = state.tables, selected.rows
    everyone = tables.read("groups", ["group_id", "group_type"])
    types = dict(zip(*(each.to_pylist() for each in everyone.columns), strict=True))
    said = limit_settings(tables.read("configs"), state.settings)
    asked = set(types) | set(groups["group_id"].to_pylist())
    if tables.selection.groups:
        own = {group: values for group, values in said.groups.items() if group in asked}
        said = LimitSettings(said.brokers, own)
    # What cannot be told may be that there are more groups, or less.
    left_out = _left_out(state) or next(iter(selected.cannot_tell), None)
    seen = Seen(
        {
            **{kind: _most(backlog, column) for kind, column in _BACKLOG.items()},
            "members": _most(groups, "member_count"),
        },
        None if left_out else groups.num_rows,
        partition_count(state, SHARE_GROUP_STATE),
        {**_missing(groups), **_missing(backlog)},
        left_out,
    )
    return share_limits_found(said, seen, types, state.release)


def _left_out(state: ReplayedWorkspace) -> str | None:
    """Return in words which groups are not looked at; None where all are."""
    asked = state.tables.selection
    if asked.groups or asked.topics:
        return "only what was asked for is looked at: others may have more"
    made_without = left_out_of(state.manifest, asked)
    return "; ".join(made_without) if made_without else None


def limit_settings(configs: pa.Table, settings: Settings) -> LimitSettings:
    """Return what limits are set to; of brokers that disagree the one that comes first is taken.

    Args:
        configs: The table `configs` at the instant.
        settings: Files that were given.
    """
    names = share_limits().keys()
    brokers: dict[str, str] = {}
    for values in (settings.from_file.values, *(each.values for each in settings.brokers)):
        brokers = {**{name: text for name, text in values.items() if name in names}, **brokers}
    own = {each.of_group for each in share_limits().values()} | {group_type_setting()[0]}
    groups: dict[str, dict[str, LimitValue]] = {}
    columns = ["resource_type", "resource", "name", "value"]
    for row in configs.select(columns).to_pylist():
        if row["resource_type"] == "group" and row["name"] in own and row["value"] is not None:
            found = groups.setdefault(row["resource"], {})
            found[row["name"]] = LimitValue(row["value"], DYNAMIC)
    for group, values in settings.from_file.groups.items():
        given = {name: LimitValue(text, BROKER_CONFIG) for name, text in values.items()}
        groups.setdefault(group, {}).update(
            {name: value for name, value in given.items() if name in own}
        )
    return LimitSettings(
        {name: LimitValue(text, BROKER_CONFIG) for name, text in brokers.items()}, groups
    )


def _most(rows: pa.Table, column: str) -> Mapping[str, int]:
    """Return by group the most of a column; nothing of groups where it is null."""
    known = rows.select(["group_id", column])
    known = known.filter(pc.is_valid(known[column]))
    found: list[dict[str, Any]] = (
        known.group_by("group_id").aggregate([(column, "max")]).to_pylist()
    )
    return {each["group_id"]: each[f"{column}_max"] for each in found}


def _missing(rows: pa.Table) -> Mapping[str, str]:
    lost = rows.filter(pc.invert(rows["complete"])).select(["group_id", "missing"])
    return {each["group_id"]: each["missing"] or "not known" for each in lost.to_pylist()}
