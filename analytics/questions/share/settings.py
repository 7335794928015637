"""What share groups go by: settings of the dump, of brokers' files and of `--config`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.side_files import MOST_INT, whole_number
from schemas.share_rules import (
    default_isolation_level,
    default_offset_reset,
    default_share_setting,
    share_settings,
)

if TYPE_CHECKING:
    from analytics.replayed.given_settings import BrokerSettings, GivenSettings, Settings

DELIVERY_LIMIT: Final = "group.share.delivery.count.limit"
RECORD_LOCKS: Final = "group.share.partition.max.record.locks"
ISOLATION: Final = "share.isolation.level"
READ_COMMITTED: Final = "read_committed"
OFFSET_RESET: Final = "share.auto.offset.reset"
EARLIEST: Final = "earliest"
ALWAYS: Final = -1
ASSUMED: Final = "default_assumed"
BROKER_CONFIG: Final = "broker_config"
DYNAMIC: Final = "dynamic"
ANSWERED: Final = "snapshot"


@dataclass(frozen=True)
class Setting:
    """A value, where it is from, and since when it holds.

    Attributes:
        value: The value.
        source: `ASSUMED`, `BROKER_CONFIG`, `DYNAMIC` or `ANSWERED`.
        since_ms: In epoch milliseconds; `ALWAYS` where nothing tells of another one before.
    """

    value: int | str
    source: str
    since_ms: int = ALWAYS


@dataclass(frozen=True)
class ShareSettings:
    """What is in force.

    Attributes:
        otherwise: By name, for groups without an own value.
        of_groups: By group and name.
    """

    otherwise: Mapping[str, Setting]
    of_groups: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)

    def of(self, group: str, name: str) -> Setting:
        """Return what is in force for a group."""
        return self.of_groups.get(group, {}).get(name) or self.otherwise[name]

    def with_setting(self, rows: pl.DataFrame, name: str, column: str) -> pl.DataFrame:
        """Add what is in force for the group of each row: its value, source, and since when.

        Args:
            rows: `group_id`.
            name: Of the setting.
            column: What the value's column is called; ``<column>_source`` and ``<column>_since``
                (epoch milliseconds, `ALWAYS`) are the others.
        """
        otherwise = self.otherwise[name]
        names = (column, f"{column}_source", f"{column}_since")
        kind = pl.String() if isinstance(otherwise.value, str) else pl.Int64()
        own = [
            (group, each.value, each.source, each.since_ms)
            for group, values in self.of_groups.items()
            if (each := values.get(name)) is not None
        ]
        types = dict(zip(names, (kind, pl.String(), pl.Int64()), strict=True))
        in_force = (otherwise.value, otherwise.source, otherwise.since_ms)
        in_general = {
            each: pl.lit(value, types[each]) for each, value in zip(names, in_force, strict=True)
        }
        if not own:
            return rows.with_columns(**in_general)
        of_groups = pl.DataFrame(own, {"group_id": pl.String(), **types}, orient="row")
        return rows.join(of_groups, "group_id", "left", maintain_order="left").with_columns(
            pl.col(each).fill_null(value) for each, value in in_general.items()
        )


_OF_GROUPS_ALONE: Final = (ISOLATION, OFFSET_RESET)
"""Words, not numbers, that groups alone have."""


@dataclass(frozen=True)
class FoundSettings:
    """What is in force, and what is to be said of it.

    Attributes:
        settings: By group.
        said: What is in force and where that is from, one sentence each.
        findings: What a person should look into, one sentence each.
    """

    settings: ShareSettings
    said: tuple[str, ...]
    findings: tuple[str, ...]


def settings_found(release: str, configs: pl.DataFrame, settings: Settings) -> FoundSettings:
    """Return what share groups go by.

    Brokers read these settings when they start, from their files alone: what the metadata log has
    of a broker they do not heed. What it has of a group they do. What they answered to a snapshot
    they go by; what they went by before, nothing tells.

    Args:
        release: Whose defaults apply.
        configs: The table `configs` at the instant.
        settings: Files that were given.

    Raises:
        InputNotRecognizedError: A setting is no whole number.
    """
    names, brokers, given = share_settings(), settings.brokers, settings.from_file
    otherwise = {
        name: _of_files(name, brokers, given)
        or _answered(name, configs)
        or Setting(default_share_setting(name, release), ASSUMED)
        for name in names
    }
    otherwise[ISOLATION] = Setting(default_isolation_level(), ASSUMED)
    otherwise[OFFSET_RESET] = Setting(default_offset_reset(), ASSUMED)
    groups: dict[str, dict[str, Setting]] = {}
    for group, values, source, since_ms in (*_in_dump(configs), *_given(given)):
        found = _of_group(group, values, names, source)
        timed = {name: replace(said, since_ms=since_ms) for name, said in found.items()}
        groups.setdefault(group, {}).update(timed)
    found_settings = ShareSettings(otherwise, {name: said for name, said in groups.items() if said})
    return FoundSettings(
        found_settings,
        tuple(_sentences(found_settings, names)),
        tuple(_disagreements(names, brokers)),
    )


def _of_files(
    name: str, brokers: Sequence[BrokerSettings], from_file: GivenSettings
) -> Setting | None:
    if name in from_file.values:
        return Setting(_number(from_file.values[name], name, "--config"), BROKER_CONFIG)
    found = [_number(each.values[name], name, each.name) for each in brokers if name in each.values]
    return Setting(min(found), BROKER_CONFIG) if found else None


def _answered(name: str, configs: pl.DataFrame) -> Setting | None:
    """Return what brokers answered: where they differ, the least."""
    is_answer = (pl.col("source") == ANSWERED) & (pl.col("resource_type") == "broker")
    rows = configs.filter(is_answer & (pl.col("name") == name)).select("value", "since").rows()
    if not rows:
        return None
    since_ms = round(rows[0][1].timestamp() * 1000)
    return Setting(min(_number(value, name, _ANSWER) for value, _ in rows), ANSWERED, since_ms)


_ANSWER: Final = "a broker's answer"


def _in_dump(configs: pl.DataFrame) -> Iterable[tuple[str, Mapping[str, str], str, int]]:
    of_groups = configs.filter(
        (pl.col("resource_type") == "group") & pl.col("value").is_not_null()
    ).select("resource", "name", "value", "since", "source")
    for group, name, value, since, source in of_groups.iter_rows():
        since_ms = ALWAYS if since is None else round(since.timestamp() * 1000)
        yield group, {name: value}, ANSWERED if source == ANSWERED else DYNAMIC, since_ms


def _given(given: GivenSettings) -> Iterable[tuple[str, Mapping[str, str], str, int]]:
    for group, values in given.groups.items():
        yield group, values, BROKER_CONFIG, ALWAYS


def _of_group(
    group: str, values: Mapping[str, str], names: Mapping[str, str], source: str
) -> dict[str, Setting]:
    found = {
        name: Setting(_number(values[own], own, f"group {group}"), source)
        for name, own in names.items()
        if own in values
    }
    for name in _OF_GROUPS_ALONE:
        if name in values:
            found[name] = Setting(values[name].strip().lower(), source)
    return found


def _number(text: str, name: str, where: str) -> int:
    return whole_number(text, name, where, least=1, most=MOST_INT)


def _sentences(settings: ShareSettings, names: Mapping[str, str]) -> Iterable[str]:
    why = {
        ASSUMED: "Kafka's default, assumed",
        BROKER_CONFIG: "from the settings given",
        ANSWERED: "as the cluster answered",
    }
    for name, said in settings.otherwise.items():
        if name in _OF_GROUPS_ALONE:
            continue
        yield f"{name} = {said.value} ({why[said.source]})"
    for group, values in sorted(settings.of_groups.items()):
        for name, said in values.items():
            own = {DYNAMIC: "from the metadata log", ANSWERED: why[ANSWERED]}
            source = own.get(said.source, "from --config")
            yield f"group {group}: {names.get(name, name)} = {said.value} ({source})"


def _disagreements(names: Iterable[str], brokers: Sequence[BrokerSettings]) -> Iterable[str]:
    for name in names:
        said = {each.name: each.values[name].strip() for each in brokers if name in each.values}
        if len(set(said.values())) > 1:
            listed = ", ".join(f"{file} {value}" for file, value in said.items())
            yield f"brokers disagree about {name}: {listed}; the least is taken"
