"""Control batches of an early text of KIP-932 in a real broker's data partition.

No client can write them: the broker refuses batches with the control flag. So it is asked to,
which it must refuse, and is then stopped, the batches are put behind the log, and it is started
again: it has to keep them, and we have to read just them, among data and transaction markers.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analytics.seeds.checkpoint_delta.chain_fold import fold_chains
from analytics.seeds.checkpoint_delta.chain_tables import chain_tables
from analytics.seeds.checkpoint_delta.inputs import chain_inputs
from tests.brokers.answers import NotYetError
from tests.brokers.asking import Ask, Asker
from tests.brokers.broker import Addresses, Broker
from tests.brokers.programs import Programs
from tests.brokers.releases import Release, broker_settings, loading_settings
from tests.brokers.truncation import forget
from tests.support.chain_histories import as_control_batch, shifted, written
from tests.support.reference_chains import ChainRecord, recover
from tests.support.segments import batch, records

TOPIC, DATA = "chained", 10
INVALID_RECORD = 87
_PRODUCE, _LIST_OFFSETS, _LATEST = 9, 7, -1
_SEQUENCES = 12
_FOR_EVER = {"log.retention.ms": "-1", "log.retention.bytes": "-1"}

Say = Callable[[str], object]


@dataclass(frozen=True)
class Chained:
    """A fresh broker whose data partition gets checkpoints and deltas."""

    release: Release
    seed: int
    programs: Programs
    folder: Path
    say: Say

    def differ(self) -> bool:
        """Write, and tell what the broker or we make of it otherwise than expected; whether so."""
        addresses = Addresses.free()
        # What is written is dated years ago: retention would delete it at once.
        settings = loading_settings(broker_settings(self.release, self.seed)) | _FOR_EVER
        broker = Broker(self.programs, addresses, settings, self.folder / "chained")
        broker.format(self.release)
        history = self._history()
        with Asker(self.programs, addresses.bootstrap) as ask:
            broker.start()
            try:
                broker.answer(lambda: _create(ask))
                first = batch(records(0, DATA)).data
                written_to = broker.answer(lambda: _produced(ask, first))
                refused = _produced(ask, as_control_batch(history[0]).data)
            finally:
                broker.stop()
            _put_behind(broker.log_dir, history)
            broker.start()
            try:
                end = broker.answer(lambda: _log_end(ask))
            finally:
                broker.stop()
        differs = [
            *([f"data is refused with {written_to}"] if written_to else []),
            *([f"a client's control batch gets {refused}"] if refused != INVALID_RECORD else []),
            *([f"the log ends at {end}"] if end != history[-1].offset + 1 else []),
            *_read_otherwise(broker.log_dir, history),
        ]
        for each in differs:
            self.say(f"{TOPIC}-0: {each}")
        self.say(
            f"{len(history)} checkpoints and deltas behind a log, {len(differs)} things differ"
        )
        return bool(differs)

    def _history(self) -> list[ChainRecord]:
        draw = random.Random(self.seed)
        for _ in range(_SEQUENCES):
            found = written(draw, records=80)
            if found:
                return shifted(found, DATA)
        raise AssertionError("no history in so many draws")


def _create(ask: Ask) -> None:
    topic = {
        "name": TOPIC,
        "numPartitions": 1,
        "replicationFactor": 1,
        "assignments": [],
        "configs": [],
    }
    request = {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}
    answer = ask("CreateTopics", request, 5)
    code = answer["topics"][0]["errorCode"]
    if code not in {0, 36}:  # it is there already
        raise NotYetError(f"the topic cannot be made: {code}")


def _produced(ask: Ask, content: bytes) -> int:
    """Return the error code of the answer to a batch."""
    partition = {"index": 0, "records": base64.b64encode(content).decode()}
    request = {
        "transactionalId": None,
        "acks": -1,
        "timeoutMs": 10_000,
        "topicData": [{"name": TOPIC, "partitionData": [partition]}],
    }
    answer = ask("Produce", request, _PRODUCE)
    code: int = answer["responses"][0]["partitionResponses"][0]["errorCode"]
    if code in {3, 5, 6}:  # no leader yet
        raise NotYetError(f"not written: {code}")
    return code


def _log_end(ask: Ask) -> int:
    partition = {"partitionIndex": 0, "currentLeaderEpoch": -1, "timestamp": _LATEST}
    request = {
        "replicaId": -1,
        "isolationLevel": 0,
        "topics": [{"name": TOPIC, "partitions": [partition]}],
    }
    answer = ask("ListOffsets", request, _LIST_OFFSETS)
    found: dict[str, Any] = answer["topics"][0]["partitions"][0]
    if found["errorCode"]:
        raise NotYetError(f"no end yet: {found['errorCode']}")
    end: int = found["offset"]
    return end


def _put_behind(log_dir: Path, history: list[ChainRecord]) -> None:
    """Put control batches behind the log, and data wherever their offsets leave room."""
    folder = log_dir / f"{TOPIC}-0"
    at = DATA
    with max(folder.glob("*.log")).open("ab") as file:
        for record in history:
            if at < record.offset:
                file.write(batch(records(at, record.offset - at)).data)
            file.write(as_control_batch(record).data)
            at = record.offset + 1
    # The broker shall look at the log itself.
    forget(log_dir)
    for suffix in ("index", "timeindex", "snapshot"):
        for made in folder.glob(f"*.{suffix}"):
            made.unlink()


def _read_otherwise(log_dir: Path, history: list[ChainRecord]) -> list[str]:
    """Return where what we read is not what was written."""
    logs = [each.read() for each in chain_inputs([str(log_dir)], topics=[TOPIC])]
    found = {
        row["group_id"]: (row["start_offset"], row["complete"])
        for row in chain_tables(fold_chains(logs))["share_partitions"].to_pylist()
    }
    expected = {group: (state.start, True) for group, state in recover(history).items()}
    return [] if found == expected else [f"we read {found}, written was {expected}"]
