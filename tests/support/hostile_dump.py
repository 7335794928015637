"""A dump whose names are hostile: signs of shells, HTML, tables and addresses, and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from schemas import CONSUMER_OFFSETS, record_types
from tests.support.encoder import encode_key, encode_value
from tests.support.hostile_records import write_groups, write_metadata
from tests.support.log_dirs import LogDir
from tests.support.segments import NOW, Record, batch

if TYPE_CHECKING:
    from pathlib import Path

SIGNS: Final = (
    "q'uo\"te", "two words", "a,b|c", "<b>bold</b>", "50%25off%20now", "&lt;i&gt;&amp;",
    "$(touch x);`id`", "back\\slash", "*glob?[z]", "größe", "-dash --out x", "#hash\ttab",
)  # fmt: skip
NUMBERS: Final = ("11", "2026", "0")
NAMES: Final = (*SIGNS, *NUMBERS)


def name_of(kind: str, signs: str) -> str:
    """Return a name of a kind with such signs; a number stays one."""
    return signs if signs in NUMBERS else f"zq{kind}{signs}{kind}qz"


def write_hostile_dump(folder: Path) -> Path:
    """Write a broker's log directory.

    It has commits, groups of all types, state of share groups, and the metadata log.
    """
    kinds = {each.table: each for each in record_types(CONSUMER_OFFSETS).values()}
    commit, group = kinds["offset_commit"], kinds["group_metadata"]
    rows: list[tuple[bytes, bytes]] = []
    for number, signs in enumerate(NAMES):
        named, who = name_of("g", signs), name_of("m", signs)
        member: dict[str, Any] = {"member_id": who, "group_instance_id": name_of("i", signs)}
        member |= {"client_id": name_of("c", signs), "client_host": name_of("h", signs)}
        member |= {"rebalance_timeout": 60000, "session_timeout": 45000}
        member |= {"subscription": b"", "assignment": b""}
        value: dict[str, Any] = {"protocol_type": "consumer", "generation": 3, "protocol": "range"}
        value |= {"leader": who, "current_state_timestamp": NOW, "members": [member]}
        rows.append((encode_key(group, 2, {"group": named}), encode_value(group, 3, value)))
        for step in range(3):
            key: dict[str, Any] = {
                "group": named,
                "topic": name_of("t", signs),
                "partition": number,
            }
            said: dict[str, Any] = {"offset": 1000 + number, "metadata": name_of("d", signs)}
            said |= {"commit_timestamp": NOW + step, "leader_epoch": 0}
            rows.append((encode_key(commit, 1, key), encode_value(commit, 3, said)))
    held = [Record(at, NOW + at * 1000, *row) for at, row in enumerate(rows)]
    log = LogDir.create(folder / "broker-1")
    log.partition(f"{CONSUMER_OFFSETS}-0", {0: [batch(held).data]}, [(0, 0)])
    write_groups(log, name_of, SIGNS)
    write_metadata(log, name_of, SIGNS)
    return log.path
