"""The table `share_limits`: KIP-932's limits, what they are set to, and what is recorded of them.

What is set is held against what brokers of the release take (``ShareGroupConfig``,
``GroupCoordinatorConfig``, ``GroupConfig``), and against the settings that hold its own least and
most; what it limits, where a record shows it, against the value in force.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import contract_schema, polars_rows
from analytics.gaps.gap import joined
from analytics.gaps.internal_topics import left_out_of, partition_count
from analytics.questions.share.settings import ANSWERED, ASSUMED, BROKER_CONFIG, DYNAMIC
from analytics.side_files import MOST_INT
from schemas import SHARE_GROUP_STATE
from schemas.share_rules import group_type_setting, limit_verdicts, share_limits

if TYPE_CHECKING:
    from analytics.gaps.group_selection import GroupSelection
    from analytics.replayed.given_settings import Settings
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.share_rules import Bounds, Limit

EXCEEDED, OUT_OF_BOUNDS, DIFFERS, CANNOT_TELL, REACHED, NOT_IN_RELEASE, WITHIN, NOT_RECORDED = (
    "exceeded",
    "out_of_bounds",
    "differs",
    "cannot_tell",
    "reached",
    "not_in_release",
    "within",
    "not_recorded",
)


@dataclass(frozen=True)
class LimitValue:
    """What a limit is set to.

    Attributes:
        text: As it was written.
        source: `BROKER_CONFIG`, `DYNAMIC` or `ANSWERED`.
    """

    text: str
    source: str

    @property
    def number(self) -> int | None:
        """Return it as a number; None where it is none, or none that an int of Kafka's can hold."""
        text = self.text.strip()
        is_number = text.removeprefix("-").isdecimal() and len(text) <= len(str(-MOST_INT))
        number = int(text) if is_number else None
        return number if number is not None and abs(number) <= MOST_INT else None


@dataclass(frozen=True)
class LimitSettings:
    """What limits are set to: brokers' by name, and of single groups by group and own name."""

    brokers: Mapping[str, LimitValue] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, LimitValue]] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """What records show of what is limited.

    Attributes:
        by_group: Of delivery_count, window_offsets and members: by group the most there is; of
            groups without settings of their own one with as much as any suffices.
        groups: How many share groups there are; None where not all were asked for.
        state_partitions: How many partitions `__share_group_state` has; None where not known.
        incomplete: By group what the dump lacks of it, in words; of groups without settings of
            their own the first by name suffices.
        left_out: Which groups are not among these, in words; None where all are.
    """

    by_group: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    groups: int | None = None
    state_partitions: int | None = None
    incomplete: Mapping[str, str] = field(default_factory=dict)
    left_out: str | None = None


def share_limits_found(
    said: LimitSettings, seen: Seen, types: Mapping[str, str], release: str
) -> pl.DataFrame:
    """Return the table, the worst verdict first.

    Args:
        said: What limits are set to.
        seen: What records show.
        types: Of each group its type, as in the table `groups`.
        release: Whose defaults and bounds apply.
    """
    rows = [
        row
        for name, limit in share_limits().items()
        for row in _of_limit(_LimitInRelease(name, limit, said, release), seen)
    ]
    rows += _of_types(said, types, seen.left_out)
    rank = list(limit_verdicts())
    rows.sort(key=lambda row: rank.index(row["verdict"]))
    return pl.DataFrame(rows, contract_schema("share_limits"), orient="row")


@dataclass(frozen=True)
class _LimitInRelease:
    """A limit by its name, what limits are set to, and in which release."""

    name: str
    limit: Limit
    settings: LimitSettings
    release: str


def _of_limit(in_release: _LimitInRelease, seen: Seen) -> Iterator[dict[str, Any]]:
    limit = in_release.limit
    own = {
        group: value
        for group, values in in_release.settings.groups.items()
        if limit.of_group and (value := values.get(limit.of_group.name)) is not None
    }
    by_group = seen.by_group.get(limit.evidence or "", {})
    others = {group: most for group, most in by_group.items() if group not in own}
    untold = {group: why for group, why in seen.incomplete.items() if group not in own}
    most = _most(limit, seen, others)
    in_general = _row(
        in_release, None, in_release.settings.brokers.get(in_release.name), most, untold
    )
    is_of_groups = limit.evidence not in {None, "state_partitions"}
    if in_general["verdict"] == NOT_RECORDED and is_of_groups and seen.left_out:
        in_general |= {"verdict": CANNOT_TELL, "reason": seen.left_out}
    yield in_general
    for group, value in sorted(own.items()):
        most = (by_group.get(group), group)
        untold = {group: seen.incomplete[group]} if group in seen.incomplete else {}
        yield _row(in_release, group, value, most, untold)


_Most = tuple[int | None, str | None]
_NOTHING: Final[_Most] = (None, None)


def _most(limit: Limit, seen: Seen, by_group: Mapping[str, int]) -> _Most:
    """Return the most that is recorded of what a limit is about, and the group it is of."""
    match limit.evidence:
        case None:
            return _NOTHING
        case "groups":
            return seen.groups, None
        case "state_partitions":
            return seen.state_partitions, None
    return max(((most, group) for group, most in by_group.items()), default=_NOTHING)


def _row(
    in_release: _LimitInRelease,
    group: str | None,
    value: LimitValue | None,
    most: _Most,
    untold: Mapping[str, str],
) -> dict[str, Any]:
    limit, own = in_release.limit, in_release.limit.of_group
    bounds = limit.in_release(in_release.release)
    least, greatest = _least_and_most(limit, bounds, in_release.settings)
    verdict: str
    reason: str | None
    if bounds is None:
        verdict, reason = NOT_IN_RELEASE, f"Kafka {in_release.release} has no {in_release.name}"
    else:
        wrong = _wrong(value, least, greatest)
        number = bounds.default if value is None else value.number
        verdict, reason = (OUT_OF_BOUNDS, wrong) if wrong else (NOT_RECORDED, None)
        if not wrong and number is not None and most[0] is not None:
            verdict, reason = _against(
                limit, number, most[0], is_assumed=value is None, untold=untold
            )
    return {
        "setting": in_release.name if group is None else own and own.name,
        "group_id": group,
        "kip_name": limit.kip and limit.kip.name,
        "value": value.number if value else bounds and bounds.default,
        "source": value.source if value else ASSUMED if bounds else None,
        "default_value": bounds and bounds.default,
        "kip_default": limit.kip and limit.kip.default,
        "least": least,
        "most": greatest,
        "seen": most[0],
        "seen_of": most[1],
        "verdict": verdict,
        "reason": reason,
    }


def _least_and_most(
    limit: Limit, bounds: Bounds | None, said: LimitSettings
) -> tuple[int | None, int | None]:
    """Return what brokers take: their own bounds, narrowed by what is set for least and most."""
    if bounds is None:
        return None, None
    least, most = [bounds.least], [bounds.most]
    for name, known in zip(limit.between or (), (least, most), strict=False):
        if name in said.brokers:
            known.append(said.brokers[name].number)
    return (
        max((each for each in least if each is not None), default=None),
        min((each for each in most if each is not None), default=None),
    )


def _wrong(value: LimitValue | None, least: int | None, most: int | None) -> str | None:
    """Return why brokers do not take a value; None where they do, or none is set."""
    if value is None:
        return None
    if value.number is None:
        return f"{value.text!r} is no whole number"
    if _holds(value.number, least, most):
        return None
    return f"{value.number} is not between {_shown(least)} and {_shown(most)}"


def _against(
    limit: Limit, number: int, seen: int, *, is_assumed: bool, untold: Mapping[str, str]
) -> tuple[str, str | None]:
    if limit.evidence == "state_partitions":
        return _of_topic(number, seen, is_assumed=is_assumed)
    if seen >= number:
        if seen == number or limit.may_be_passed:
            return REACHED, None
        return (CANNOT_TELL, _ASSUMED) if is_assumed else (EXCEEDED, None)
    if untold:
        group, why = min(untold.items())
        return CANNOT_TELL, f"there may be more of {group}: {why}"
    return WITHIN, None


def _of_topic(number: int, seen: int, *, is_assumed: bool) -> tuple[str, str | None]:
    """Brokers read the number when they make the topic: another one since then changes nothing."""
    if seen == number:
        return WITHIN, None
    if is_assumed:
        return WITHIN, "the topic was made with another number than the default"
    return DIFFERS, f"the topic has {seen} partitions: it was made when another number was set"


_ASSUMED: Final = "the limit is assumed: without the brokers' settings nobody can tell"


def _holds(number: int, least: int | None, most: int | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)


def _shown(bound: int | None) -> str:
    return "any" if bound is None else str(bound)


def _of_types(
    said: LimitSettings, types: Mapping[str, str], left_out: str | None
) -> Iterator[dict[str, Any]]:
    """Return what `group.type` asks for, and what groups are: KIP-932 has it, no release does."""
    name, allowed = group_type_setting()
    nothing = dict.fromkeys(("value", "default_value", "kip_default", "least", "most", "seen"))
    for group, values in sorted(said.groups.items()):
        if name not in values:
            continue
        asked, is_of = values[name].text.strip().lower(), types.get(group)
        verdict, reason = WITHIN, f"it asks for {asked}, and the group is {is_of}"
        if asked not in allowed:
            verdict, reason = OUT_OF_BOUNDS, f"{asked} is none of {', '.join(allowed)}"
        elif is_of is None and left_out:
            verdict, reason = CANNOT_TELL, f"it asks for {asked}; {left_out}"
        elif is_of is None:
            verdict, reason = NOT_RECORDED, f"it asks for {asked}, and there is no such group"
        elif is_of != asked and not (asked == "consumer" and is_of in {"classic", "simple"}):
            verdict = DIFFERS
        yield {
            **nothing,
            "setting": name,
            "group_id": group,
            "kip_name": name,
            "source": values[name].source,
            "seen_of": group,
            "verdict": verdict,
            "reason": reason,
        }


_BACKLOG: Final = {"delivery_count": "max_delivery_count", "window_offsets": "window_offsets"}
_EVIDENCE: Final = (*_BACKLOG, "members")


class SeenOfSome(NamedTuple):
    """What records show of some whole groups (`Seen`)."""

    by_group: Mapping[str, Mapping[str, int]]
    incomplete: Mapping[str, str]


def seen_of(groups: pl.DataFrame, backlog: pl.DataFrame, with_own: Collection[str]) -> SeenOfSome:
    """Return what records show of some whole share groups: it does not grow with them.

    Args:
        groups: Of the table `groups`: `group_id`, `member_count`, `complete`, `missing`.
        backlog: The table `share_backlog`.
        with_own: Groups that have settings of their own.
    """
    # Groups without a setting of their own are never gone through: there may be many.
    is_set = pl.col("group_id").is_in(list(with_own))
    return SeenOfSome(
        {
            **{kind: most_by_group(backlog, column, is_set) for kind, column in _BACKLOG.items()},
            "members": most_by_group(groups, "member_count", is_set),
        },
        lacking_by_group(groups, backlog, is_set),
    )


def limits_of(
    state: ReplayedWorkspace,
    selected: GroupSelection,
    settings: LimitSettings,
    parts: Sequence[SeenOfSome],
) -> pl.DataFrame:
    """Return the table `share_limits`.

    Args:
        state: Says the instant and release.
        selected: The share groups that are asked about.
        settings: What limits are set to.
        parts: What is seen of all groups, each in one of them.
    """
    tables = state.tables
    is_set = pc.field("group_id").isin(pa.array(list(settings.groups), pa.string()))
    found = polars_rows(tables.read("groups", ["group_id", "group_type"], is_set))
    types = dict(found.iter_rows())
    if tables.selection.groups:
        own = {group: values for group, values in settings.groups.items() if group in types}
        settings = LimitSettings(settings.brokers, own)
    # What cannot be told may be that there are more groups, or less.
    left_out = _left_out(state) or next(iter(selected.cannot_tell), None)
    seen = Seen(
        {
            kind: dict(ChainMap(*(dict(each.by_group[kind]) for each in parts)))
            for kind in _EVIDENCE
        },
        None if left_out else selected.rows.num_rows,
        partition_count(state, SHARE_GROUP_STATE),
        dict(ChainMap(*(dict(each.incomplete) for each in parts))),
        left_out,
    )
    return share_limits_found(settings, seen, types, state.release)


def _left_out(state: ReplayedWorkspace) -> str | None:
    """Return in words which groups are not looked at; None where all are."""
    asked = state.tables.selection
    if asked.groups or asked.topics:
        return "only what was asked for is looked at: others may have more"
    return joined(left_out_of(state.manifest, asked))


def limit_settings(configs: pl.DataFrame, settings: Settings) -> LimitSettings:
    """Return what limits are set to; of brokers that disagree the one that comes first is taken.

    Args:
        configs: The table `configs` at the instant.
        settings: Files that were given.
    """
    names = share_limits().keys()
    is_answer = (pl.col("source") == ANSWERED) & (pl.col("resource_type") == "broker")
    answers = configs.filter(is_answer & pl.col("name").is_in([*names]))
    brokers = {
        name: LimitValue(value, ANSWERED)
        for name, value in answers.sort("resource", descending=True)
        .select("name", "value")
        .iter_rows()
    }
    files = (settings.from_file.values, *(each.values for each in settings.brokers))
    for values in reversed(files):
        given = {name: text for name, text in values.items() if name in names}
        brokers |= {name: LimitValue(text, BROKER_CONFIG) for name, text in given.items()}
    own = {each.of_group.name for each in share_limits().values() if each.of_group}
    own.add(group_type_setting()[0])
    groups: dict[str, dict[str, LimitValue]] = {}
    is_own = (pl.col("resource_type") == "group") & pl.col("name").is_in([*own])
    of_groups = configs.filter(is_own & pl.col("value").is_not_null())
    columns = ("resource", "name", "value", "source")
    for group, name, value, source in of_groups.select(columns).iter_rows():
        whose = ANSWERED if source == ANSWERED else DYNAMIC
        groups.setdefault(group, {})[name] = LimitValue(value, whose)
    for group, values in settings.from_file.groups.items():
        groups.setdefault(group, {}).update(
            {name: LimitValue(text, BROKER_CONFIG) for name, text in values.items() if name in own}
        )
    return LimitSettings(brokers, groups)


def most_by_group(rows: pl.DataFrame, column: str, is_set: pl.Expr) -> Mapping[str, int]:
    """Return by group the most of a column: of groups with settings, and of the others the most.

    Args:
        rows: `group_id` and the column; nothing counts of groups where it is null.
        column: Its name.
        is_set: Which groups have settings of their own.
    """
    known = rows.filter(pl.col(column).is_not_null())
    found = known.group_by("group_id").agg(pl.col(column).max())
    # Of several with as much it is the last by name.
    most = found.filter(~is_set).sort(column, "group_id").tail(1)
    return dict(pl.concat([found.filter(is_set), most]).iter_rows())


def lacking_by_group(
    groups: pl.DataFrame, backlog: pl.DataFrame, is_set: pl.Expr
) -> Mapping[str, str]:
    """Return by group what is lacking: of groups with settings, and of the others the first."""
    why = pl.col("missing").fill_null("not known")
    # What its backlog lacks goes before what the group does.
    both = pl.concat(
        rows.filter(~pl.col("complete")).select("group_id", why) for rows in (groups, backlog)
    ).unique("group_id", keep="last", maintain_order=True)
    first = both.filter(~is_set).sort("group_id").head(1)
    return dict(pl.concat([both.filter(is_set), first]).iter_rows())
