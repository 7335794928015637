"""What a broker refuses to load of a log that lost records, held against the table `load_faults`.

A broker that cannot load a partition names the record in its own log, and answers for none of the
groups: there is nothing that it could be asked.
"""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass
from pathlib import Path

from analytics.replay.graph import needed_for, resolve
from analytics.replay.history.tables import HISTORY
from analytics.replay.log.losses import WHOLE
from analytics.replay.log.rules import replay_rules
from schemas import tables
from tests.brokers.broker import Addresses, Broker, BrokerFailedError
from tests.brokers.performance import Say
from tests.brokers.programs import Programs
from tests.brokers.releases import Release, broker_settings, loading_settings
from tests.brokers.thinning import GROUPS, thinned_copy
from tests.support.decoded_frames import frames_of_dump

_LOADED = re.compile(rf"Finished loading of metadata from {GROUPS}-(\d+)")
_FAILED = re.compile(rf"Failed to load metadata from {GROUPS}-(\d+)")
_AT = re.compile(rf"Replaying record .* from {GROUPS}-(\d+) at offset (\d+) .*failed")
_SECONDS = 120
_BETWEEN = 0.5

Refused = dict[int, int]
"""By partition, the offset of the record at which loading stops."""


@dataclass(frozen=True)
class Thinned:
    """Copies of a dump's log directory from which records were taken, loaded one by one."""

    release: Release
    seed: int
    copies: int
    programs: Programs
    folder: Path
    say: Say

    def differ(self, log_dir: Path) -> bool:
        """Load them, and tell which partitions a broker refuses and where; whether we agree."""
        refused = differing = 0
        partitions = len(list(log_dir.glob(f"{GROUPS}-*")))
        settings = loading_settings(broker_settings(self.release, self.seed))
        for number in range(self.copies):
            folder = self.folder / f"thinned-{number:02}"
            broker = Broker(self.programs, Addresses.free(), settings, folder)
            thinned_copy(log_dir, broker.log_dir, random.Random(f"{self.seed} {number}"))
            ours = _we_say(broker.log_dir, self.release)
            theirs = _it_says(broker, partitions)
            refused += len(theirs)
            for each in sorted({partition for partition, _ in ours.items() ^ theirs.items()}):
                differing += 1
                self.say(
                    f"thinned copy {number}, {GROUPS}-{each}: we say {ours.get(each)}, the "
                    f"broker {theirs.get(each)}"
                )
        loads = self.copies * partitions
        self.say(f"{loads} thinned partitions loaded, {refused} refused, {differing} differ")
        return differing > 0


def _it_says(broker: Broker, partitions: int) -> Refused:
    """Let a broker load all its partitions, or give up."""
    broker.start()
    try:
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            said = broker.said.read_text(errors="replace")
            failed = {int(each) for each in _FAILED.findall(said)}
            if len(failed | {int(each) for each in _LOADED.findall(said)}) == partitions:
                places = {int(partition): int(offset) for partition, offset in _AT.findall(said)}
                return {each: places[each] for each in failed}
            time.sleep(_BETWEEN)
    finally:
        broker.kill()
    raise BrokerFailedError(f"it has not loaded all in {_SECONDS} s")


def _we_say(log_dir: Path, release: Release) -> Refused:
    names = [each.name for each in tables().values() if each.kind in {"decoded", "control"}]
    decoded = frames_of_dump(log_dir, GROUPS, names)
    given = {"cut": decoded, "rules": replay_rules(release.number), "coverage": WHOLE}
    made = resolve(needed_for(HISTORY, ("load_faults",)), given)
    found: Refused = {}
    refused = made["load_faults"].filter("stops_loading").sort("record_offset")
    for row in refused.iter_rows(named=True):
        found.setdefault(row["coordinator_partition"], row["record_offset"])
    return found
