"""How long topics keep their records: their own settings, then those of the brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from analytics.questions.lag.loss import NO_CONFIGS, TopicRetention
from analytics.replay.metadata.topic_sources import METADATA_LOG
from analytics.side_files import whole_number

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.replayed.given_settings import BrokerSettings, Settings

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
_MS: Final = (("log.retention.ms", 1), ("log.retention.minutes", _MINUTE_MS))
_HOURS: Final = "log.retention.hours"
_DEFAULT_HOURS: Final = 168
_BYTES: Final = "log.retention.bytes"
_POLICY: Final = "log.cleanup.policy"
_DELETE: Final = "delete"
TIERED: Final = "the topic has tiered storage: files beside the dump are not all of the log"
ASSUMED: Final = "Kafka's default, assumed"
OF_TOPIC: Final = "the topic's own"
DYNAMIC: Final = "the brokers', in the metadata log"

Said = Mapping[str, tuple[str, str]]
"""By name: the value, and where it is from."""


def topic_retention(
    topics: pa.Table,
    configs: pa.Table,
    settings: Settings,
) -> dict[str, TopicRetention]:
    """Return how long each topic keeps its records.

    A topic's own setting goes before the brokers'; of these the dynamic ones of the metadata log go
    before files, as with brokers (``DynamicLogConfig``), and `--config` before all of them.

    Args:
        topics: The table `topics` at the instant.
        configs: The table `configs`.
        settings: Files that were given; where brokers' differ the one that keeps less counts.

    Raises:
        InputNotRecognizedError: A setting is no whole number.
    """
    rows = configs.select(["resource_type", "resource", "name", "value"]).to_pylist()
    own: dict[str, dict[str, tuple[str, str]]] = {}
    for each in rows:
        if each["resource_type"] == "topic" and each["value"] is not None:
            own.setdefault(each["resource"], {})[each["name"]] = each["value"], OF_TOPIC
    sources = [
        *_of_files(settings.brokers),
        _dynamic(rows),
        _named(settings.given.values, "--config"),
    ]
    if not settings.brokers:
        sources.insert(0, {})
    otherwise = [
        {name: said for layer in (file, *sources[-2:]) for name, said in layer.items()}
        for file in sources[:-2]
    ]
    found: dict[str, TopicRetention] = {}
    for each in topics.select(["topic", "source", "deleted_at"]).to_pylist():
        if each["deleted_at"] is None:
            kept = [_of(own.get(each["topic"], {}), layer) for layer in otherwise]
            least = min(kept, key=lambda one: (_or_all(one.ms), _or_all(one.size)))
            is_told = each["source"] == METADATA_LOG
            found[each["topic"]] = least if is_told else TopicRetention(why_unknown=NO_CONFIGS)
    return found


def _or_all(number: int | None) -> float:
    return float("inf") if number is None else number


def _of_files(brokers: Iterable[BrokerSettings]) -> list[Said]:
    return [_named(each.values, each.name) for each in brokers]


def _named(values: Mapping[str, str], where: str) -> dict[str, tuple[str, str]]:
    return {name: (value, where) for name, value in values.items()}


def _dynamic(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Return what the metadata log has of all brokers, and what it has of the only one it names."""
    of_brokers = [each for each in rows if each["resource_type"] == "broker" and each["value"]]
    of_one = {each["resource"] for each in of_brokers if each["resource"]}
    wanted = {"", *(of_one if len(of_one) == 1 else ())}
    ordered = sorted(of_brokers, key=lambda each: str(each["resource"]))
    return {
        each["name"]: (each["value"], DYNAMIC) for each in ordered if each["resource"] in wanted
    }


def _of(own: Said, brokers: Said) -> TopicRetention:
    if own.get("remote.storage.enable", ("", ""))[0].strip().lower() == "true":
        return TopicRetention(why_unknown=TIERED)
    policy, where = own.get("cleanup.policy") or brokers.get(_POLICY) or (_DELETE, ASSUMED)
    if _DELETE not in [each.strip() for each in policy.split(",")]:
        return TopicRetention(said=f"cleanup.policy = {policy} ({where})")
    ms, ms_from = _retention_ms(own, brokers)
    size, size_from = own.get("retention.bytes") or brokers.get(_BYTES) or ("-1", ASSUMED)
    kept = _number("retention.bytes", size, size_from)
    said = f"retention.ms = {ms} ({ms_from})"
    said += f", retention.bytes = {kept} ({size_from})" if kept >= 0 else ""
    return TopicRetention(ms if ms >= 0 else None, kept if kept >= 0 else None, said)


def _retention_ms(own: Said, brokers: Said) -> tuple[int, str]:
    """Return retention by time, and where it is from: the finest unit that is set counts."""
    if "retention.ms" in own:
        text, where = own["retention.ms"]
        return _number("retention.ms", text, where), where
    for name, unit in (*_MS, (_HOURS, _HOUR_MS)):
        if name in brokers:
            text, where = brokers[name]
            number = _number(name, text, where)
            return (number * unit if number >= 0 else -1), where
    return _DEFAULT_HOURS * _HOUR_MS, ASSUMED


def _number(name: str, text: str, where: str) -> int:
    return whole_number(text, name, where, least=-1)
