"""Where the retention of offsets comes from: defaults, the dump, files, and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from analytics.dump.inspection.limitations import ranges
from analytics.epoch_times import LAST_MS, iso_time
from analytics.side_files import MOST_INT, whole_number
from schemas import CONSUMER_OFFSETS
from schemas.expiration_rules import CHECK_INTERVAL, RETENTION, default_setting, is_dynamic
from schemas.names import is_setting, nearest_setting

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from analytics.replayed.given_settings import BrokerSettings, GivenSettings

# How long a coordinator keeps offsets, and how often it cleans up: one setting a partition.

ASSUMED, BROKER_CONFIG, DYNAMIC, SNAPSHOT, OPTION, RECORD = (
    "default_assumed",
    "broker_config",
    "dynamic",
    "snapshot",
    "option",
    "record",
)


@dataclass(frozen=True)
class Setting:
    """A retention and where it is from.

    Attributes:
        retention_ms: `offsets.retention.minutes`, in milliseconds.
        source: default_assumed, broker_config, dynamic, snapshot or option.
        check_interval_ms: `offsets.retention.check.interval.ms`.
        since_ms: When it was set, or answered to a snapshot, in epoch milliseconds; None where it
            holds for all times.
        assumed_before_ms: The retention that is assumed for before `since_ms`.
    """

    retention_ms: int
    source: str
    check_interval_ms: int
    since_ms: int | None = None
    assumed_before_ms: int | None = None


@dataclass(frozen=True)
class Retention:
    """Settings of coordinators.

    Attributes:
        otherwise: For every partition of `__consumer_offsets` that is not named.
        of_partitions: By partition of `__consumer_offsets`: that of its coordinator.
        of_groups: By group, stronger than both.
    """

    otherwise: Setting
    of_partitions: Mapping[int, Setting] = field(default_factory=dict)
    of_groups: Mapping[str, Setting] = field(default_factory=dict)


def with_retention(
    rows: pl.DataFrame, retention: Retention, at_ms: pl.Expr | None = None
) -> pl.DataFrame:
    """Add `retention_ms`, `retention_source`, `check_interval_ms` and `is_interval_assumed`.

    Args:
        rows: Has `coordinator_partition` and `group_id`.
        retention: The settings.
        at_ms: The instant of a row (epoch milliseconds), where it is not what the settings are
            of: before one was set, another held that nothing tells.
    """
    of_partitions = _settings("coordinator_partition", pl.Int32(), retention.of_partitions)
    of_groups = _settings("group_id", pl.String(), retention.of_groups)
    found = _looked_up(rows, of_partitions, "coordinator_partition", "")
    found = _looked_up(found, of_groups, "group_id", "_of_group")

    def of_coordinator(name: str) -> pl.Expr:
        otherwise = pl.lit(getattr(retention.otherwise, name), _FIELDS[name])
        return pl.when(pl.col("source").is_null()).then(otherwise).otherwise(name)

    def setting(name: str) -> pl.Expr:
        is_given = pl.col("source_of_group").is_not_null()
        return pl.when(is_given).then(f"{name}_of_group").otherwise(of_coordinator(name))

    told, source = setting("retention_ms"), setting("source")
    if at_ms is not None:
        is_before = (at_ms < setting("since_ms")).fill_null(value=False)
        told = pl.when(is_before).then(setting("assumed_before_ms")).otherwise(told)
        source = pl.when(is_before).then(pl.lit(ASSUMED)).otherwise(source)
    added = (
        told.alias("found_retention_ms"),
        source.alias("retention_source"),
        of_coordinator("check_interval_ms").alias("found_interval_ms"),
        (of_coordinator("source") == ASSUMED).alias("is_interval_assumed"),
    )
    beside = [*_FIELDS, *(f"{name}_of_group" for name in _FIELDS)]
    return (
        found.with_columns(added)
        .drop(beside)
        .rename({"found_retention_ms": "retention_ms", "found_interval_ms": "check_interval_ms"})
    )


_FIELDS: dict[str, pl.DataType] = {
    "retention_ms": pl.Int64(),
    "source": pl.String(),
    "check_interval_ms": pl.Int64(),
    "since_ms": pl.Int64(),
    "assumed_before_ms": pl.Int64(),
}


def _looked_up(rows: pl.DataFrame, settings: pl.DataFrame, key: str, suffix: str) -> pl.DataFrame:
    if settings.is_empty():
        nothing = (pl.lit(None, kind).alias(f"{name}{suffix}") for name, kind in _FIELDS.items())
        return rows.with_columns(nothing)
    known = settings.cast({key: rows.schema[key]}, strict=False)
    return rows.join(known, on=key, how="left", maintain_order="left", suffix=suffix)


def _settings(key: str, kind: pl.DataType, settings: Mapping[Any, Setting]) -> pl.DataFrame:
    columns = {name: [getattr(each, name) for each in settings.values()] for name in _FIELDS}
    return pl.DataFrame({key: list(settings), **columns}, schema={key: kind, **_FIELDS})


MINUTE_MS = 60_000
LEAST = 1
"""Of both settings (``GroupCoordinatorConfig``)."""
_MOST = {RETENTION: MOST_INT, CHECK_INTERVAL: LAST_MS}
"""An int, and as long as there are instants."""


@dataclass(frozen=True)
class RetentionFound:
    """What is in force, and what is to be said of it.

    Attributes:
        retention: By coordinator.
        minutes: The retentions to try.
        explanations: What is in force and where that is from, and what is tried; one sentence each.
        findings: What a person should look into, one sentence each.
    """

    retention: Retention
    minutes: tuple[int, ...]
    explanations: tuple[str, ...]
    findings: tuple[str, ...]


@dataclass(frozen=True)
class SettingSources:
    """All that may say how long offsets are kept, weakest first.

    Attributes:
        release: Whose defaults apply.
        answered: By broker (None: all brokers alike), what they answered to a snapshot.
        answered_groups: By group, likewise.
        answered_ms: When, in epoch milliseconds; None where nobody was asked.
        dynamic: By broker (None: of all brokers), settings in the metadata log.
        dynamic_groups: By group, likewise.
        since_ms: By whom they are of (broker, None, or group), since when; absent where that was
            before the metadata log begins.
        leaders: By partition of `__consumer_offsets`, the broker that leads it.
        brokers: Files of `--broker-config`.
        overrides: The file of `--config`.
        minutes: `--retention-minutes`.
    """

    release: str
    answered: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)
    answered_groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    answered_ms: int | None = None
    dynamic: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)
    dynamic_groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    since_ms: Mapping[int | str | None, int] = field(default_factory=dict)
    leaders: Mapping[int, int] = field(default_factory=dict)
    brokers: Sequence[BrokerSettings] = ()
    overrides: GivenSettings | None = None
    minutes: Sequence[int] = ()


def retention_found(sources: SettingSources) -> RetentionFound:
    """Return the retention of every coordinator and the values to try.

    One value of `--retention-minutes` is the retention in force, and is tried. Several are only
    tried: what is in force is for the settings to say.

    Raises:
        InputNotRecognizedError: A setting is no whole number.
    """
    otherwise = _setting(sources, None)
    of_partitions = {
        partition: chosen
        for partition, leader in sources.leaders.items()
        if (chosen := _setting(sources, leader)) != otherwise
    }
    told = sources.overrides.groups if sources.overrides else {}
    of_groups = {
        **{
            name: _of_group(said, otherwise, SNAPSHOT)
            for name, said in sources.answered_groups.items()
        },
        **{
            name: _of_group(said, otherwise, DYNAMIC)
            for name, said in sources.dynamic_groups.items()
        },
        **{name: _of_group(said, otherwise, BROKER_CONFIG) for name, said in told.items()},
    }
    known = {
        name: _since(each, sources, name) for name, each in of_groups.items() if each is not None
    }
    retention = Retention(otherwise, of_partitions, known)
    in_force = {otherwise, *of_partitions.values(), *retention.of_groups.values()}
    tried = tuple(sources.minutes) or tuple(
        sorted({max(1, each.retention_ms // MINUTE_MS) for each in in_force})
    )
    said = (
        *_sentences(sources, retention),
        f"what-if tries {RETENTION} = {', '.join(map(str, tried))}",
    )
    findings = (*_disagreements(sources), *_unheeded(sources), *_misspelt(sources))
    return RetentionFound(retention, tried, said, findings)


def with_state(sources: SettingSources, configs: pa.Table, leaders: pa.Table) -> SettingSources:
    """Add what the state tables `configs` and `partition_leaders` say.

    Of the latter `topic`, `partition` and `leader` are read.
    """
    rows = configs.to_pylist()
    logged = [row for row in rows if row.get("source") != SNAPSHOT]
    answers = [row for row in rows if row.get("source") == SNAPSHOT]
    dynamic, groups, since_ms = _by_resource(logged)
    answered, answered_groups, _ = _by_resource(answers)
    led = {
        row["partition"]: row["leader"]
        for row in leaders.to_pylist()
        if row["topic"] == CONSUMER_OFFSETS and row["leader"] is not None and row["leader"] >= 0
    }
    return replace(
        sources,
        answered=answered,
        answered_groups=answered_groups,
        answered_ms=_milliseconds(answers[0]["since"]) if answers else None,
        dynamic=dynamic,
        dynamic_groups=groups,
        since_ms=since_ms,
        leaders=led,
    )


_ByBroker = dict[int | None, dict[str, str]]


def _by_resource(
    rows: Iterable[Mapping[str, Any]],
) -> tuple[_ByBroker, dict[str, dict[str, str]], dict[int | str | None, int]]:
    """Return settings by broker (None: all), and by group, and since when a retention holds."""
    dynamic: _ByBroker = {}
    groups: dict[str, dict[str, str]] = {}
    since_ms: dict[int | str | None, int] = {}
    for row in rows:
        if row["name"] not in (RETENTION, CHECK_INTERVAL) or not _is_valid(
            row["name"], row["value"]
        ):
            continue
        whose: int | str | None = row["resource"]
        if row["resource_type"] == "broker":
            whose = node = int(row["resource"]) if row["resource"] else None
            dynamic.setdefault(node, {})[row["name"]] = row["value"]
        elif row["resource_type"] == "group":
            groups.setdefault(row["resource"], {})[row["name"]] = row["value"]
        if row["name"] == RETENTION and row.get("since") is not None:
            since_ms[whose] = _milliseconds(row["since"])
    return dynamic, groups, since_ms


def _milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _is_valid(name: str, value: str | None) -> bool:
    """Return whether one of both can be in force: controllers store what brokers do not take."""
    digits = "" if value is None or name not in _MOST else value.strip()
    is_number = digits.isdecimal() and len(digits) <= len(str(LAST_MS))
    return is_number and LEAST <= int(digits) <= _MOST[name]


def _setting(sources: SettingSources, node: int | None) -> Setting:
    """Return what is in force at a broker; for None at one that nothing more is known of."""
    default = default_setting(RETENTION, sources.release)
    minutes, source = default, ASSUMED
    whose: int | None = None
    interval = default_setting(CHECK_INTERVAL, sources.release)
    for said in _answers_of(sources, node):
        if RETENTION in said:
            minutes, source = _number(said, RETENTION, _ANSWER, default), SNAPSHOT
        interval = _number(said, CHECK_INTERVAL, _ANSWER, interval)
    # What brokers answer is what they run by, dynamic settings too.
    for name in dict.fromkeys((None, node)) if source != SNAPSHOT else ():
        said = sources.dynamic.get(name, {})
        if RETENTION in said:
            minutes, source = _number(said, RETENTION, "the metadata log", default), DYNAMIC
            whose = name
        interval = _number(said, CHECK_INTERVAL, "the metadata log", interval)
    if file := _file_of(sources, node):
        if RETENTION in file.values:
            minutes, source = _number(file.values, RETENTION, file.name, default), BROKER_CONFIG
        elif source == DYNAMIC and not is_dynamic(RETENTION, sources.release):
            # Brokers of the release go by their file alone, and that one leaves the default.
            minutes, source = default, ASSUMED
        interval = _number(file.values, CHECK_INTERVAL, file.name, interval)
    given = sources.overrides.values if sources.overrides else {}
    if RETENTION in given:
        minutes, source = _number(given, RETENTION, "--config", default), BROKER_CONFIG
    interval = _number(given, CHECK_INTERVAL, "--config", interval)
    if len(sources.minutes) == 1:
        minutes, source = sources.minutes[0], OPTION
    return _since(Setting(minutes * MINUTE_MS, source, interval), sources, whose)


_ANSWER: Final = "a broker's answer"


def _answers_of(sources: SettingSources, node: int | None) -> list[Mapping[str, str]]:
    """Return what a broker answered; where none is meant, the one that keeps offsets the shortest.

    A value that all brokers have is not among those of each.
    """
    everywhere = sources.answered.get(None, {})
    if node is not None:
        return [everywhere, sources.answered.get(node, {})]
    default = default_setting(RETENTION, sources.release)
    own = (values for name, values in sources.answered.items() if name is not None)
    shortest = min(own, key=lambda values: _number(values, RETENTION, _ANSWER, default), default={})
    return [everywhere, shortest]


def _since(setting: Setting, sources: SettingSources, whose: int | str | None) -> Setting:
    """Add since when a setting is known to hold: what held before nothing tells.

    Before a setting of the metadata log that was the default, as far as is known; before a broker
    answered, most likely the same.
    """
    if setting.source == SNAPSHOT:
        before = setting.retention_ms
        return replace(setting, since_ms=sources.answered_ms, assumed_before_ms=before)
    since_ms = sources.since_ms.get(whose)
    if setting.source != DYNAMIC or since_ms is None:
        return setting
    before = default_setting(RETENTION, sources.release) * MINUTE_MS
    return replace(setting, since_ms=since_ms, assumed_before_ms=before)


def _file_of(sources: SettingSources, node: int | None) -> BrokerSettings | None:
    """Return the file of a broker; where it has none, the one that keeps offsets the shortest."""
    for each in sources.brokers:
        if node is not None and each.node == node:
            return each
    default = default_setting(RETENTION, sources.release)
    return min(
        sources.brokers,
        key=lambda each: _number(each.values, RETENTION, each.name, default),
        default=None,
    )


def _of_group(values: Mapping[str, str], otherwise: Setting, source: str) -> Setting | None:
    if RETENTION not in values:
        return None
    minutes = _number(values, RETENTION, "a group's settings", 1)
    return Setting(minutes * MINUTE_MS, source, otherwise.check_interval_ms)


def _number(values: Mapping[str, str], name: str, where: str, otherwise: int) -> int:
    text = values.get(name)
    if text is None:
        return otherwise
    return whole_number(text, name, where, least=LEAST, most=_MOST[name])


def _sentences(sources: SettingSources, retention: Retention) -> list[str]:
    each = retention.otherwise
    interval = f"{CHECK_INTERVAL} = {each.check_interval_ms} ({_where_interval(sources)})"
    found = [f"{_minutes(each)} ({_where(sources, each.source, None)}) is in force; {interval}"]
    partitions: dict[Setting, list[int]] = {}
    for partition, own in sorted(retention.of_partitions.items()):
        partitions.setdefault(own, []).append(partition)
    for own, numbers in partitions.items():
        why = _where(sources, own.source, sources.leaders.get(numbers[0]))
        found.append(f"{CONSUMER_OFFSETS} {ranges(numbers)}: {_minutes(own)} ({why})")
    for group, own in sorted(retention.of_groups.items()):
        why = "from --config" if own.source == BROKER_CONFIG else _where(sources, own.source, None)
        found.append(f"group {group}: {_minutes(own)} ({why})")
    return found


def _minutes(setting: Setting) -> str:
    return f"{RETENTION} = {setting.retention_ms // MINUTE_MS}"


def _where(sources: SettingSources, source: str, node: int | None) -> str:
    """Return where the retention in force is from, in a few words."""
    file = _file_of(sources, node)
    match source:
        case "option":
            return "from --retention-minutes"
        case "dynamic":
            return "from the metadata log"
        case "snapshot":
            return _answered(sources)
        case "broker_config":
            is_given = sources.overrides is not None and RETENTION in sources.overrides.values
            where = "--config" if is_given or file is None else file.name
            return f"from the settings given: {where}"
    why = f"{file.name} does not set it" if file else "no broker settings were given"
    return f"Kafka's default, assumed: {why}"


def _answered(sources: SettingSources) -> str:
    assert sources.answered_ms is not None
    at = iso_time(sources.answered_ms)
    return f"as the cluster answered at {at}; before that the same is assumed"


def _where_interval(sources: SettingSources) -> str:
    if sources.overrides is not None and CHECK_INTERVAL in sources.overrides.values:
        return "from the settings given: --config"
    file = _file_of(sources, None)
    if file is not None and CHECK_INTERVAL in file.values:
        return f"from the settings given: {file.name}"
    if any(CHECK_INTERVAL in said for said in _answers_of(sources, None)):
        return "as the cluster answered"
    if CHECK_INTERVAL in sources.dynamic.get(None, {}):
        return "from the metadata log"
    return "Kafka's default, assumed"


def _disagreements(sources: SettingSources) -> tuple[str, ...]:
    found = []
    for name in (RETENTION, CHECK_INTERVAL):
        default = default_setting(name, sources.release)
        said = {
            each.name: _number(each.values, name, each.name, default) for each in sources.brokers
        }
        if len(set(said.values())) > 1:
            listed = ", ".join(f"{file} {value}" for file, value in said.items())
            found.append(
                f"brokers disagree about {name}: {listed}; each partition of {CONSUMER_OFFSETS} "
                "goes by its coordinator, where that is known, else by the shortest"
            )
    return tuple(found)


def _misspelt(sources: SettingSources) -> tuple[str, ...]:
    """Say of a broker's file that it sets something that is nearly the name of what we look for."""
    return tuple(
        f"{each.name} sets {name}, which Kafka does not know; did you mean {wanted}?"
        for each in sources.brokers
        for wanted in (RETENTION, CHECK_INTERVAL)
        if wanted not in each.values
        for name in each.values
        if not is_setting(name) and nearest_setting(name) == wanted
    )


def _unheeded(sources: SettingSources) -> tuple[str, ...]:
    """Say of settings in the metadata log that brokers of the release do not heed them there."""
    everyone = (*sources.dynamic.values(), *sources.dynamic_groups.values())
    return tuple(
        f"{name} is in the metadata log, where brokers of Kafka {sources.release} do not heed it: "
        "they read it when they start; --broker-config goes before and says what they run by"
        for name in (RETENTION, CHECK_INTERVAL)
        if any(name in said for said in everyone) and not is_dynamic(name, sources.release)
    )
