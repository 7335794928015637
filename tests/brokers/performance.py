"""A performance: a broker, clients that act at random on it, its last answers, and its dump."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.brokers.answers import (
    NotYetError,
    announce_topics,
    changes,
    end_offsets,
    is_settled,
    require_loaded,
    state_of,
    without_unrecorded,
)
from tests.brokers.asking import Answer, Asker
from tests.brokers.batches import batches_of
from tests.brokers.broker import Addresses, Broker, BrokerFailedError
from tests.brokers.cut_choice import ChosenCut, choose_cuts
from tests.brokers.forgotten import forgotten_keys, printed_lines, with_forgotten
from tests.brokers.programs import Programs
from tests.brokers.releases import Release, broker_settings, loading_settings
from tests.brokers.taken_dump import TakenDump
from tests.brokers.troupe import Troupe
from tests.brokers.truncation import log_starts, truncated_copy

_CUT_TOPICS = ("__consumer_offsets", "__share_group_state")
_FORGOTTEN = "__transaction_state"
_SECONDS_TO_SETTLE = 45
_SECONDS_TO_LOAD = 60
_BETWEEN_ANSWERS = 1.5

Say = Callable[[str], None]


@dataclass(frozen=True)
class Performance:
    """What is played: a release, a seed, how long, and how many cuts are loaded."""

    release: Release
    seed: int
    seconds: int
    cuts: int
    programs: Programs
    folder: Path
    say: Say

    def play(self, dump: TakenDump) -> None:
        """Act, ask, stop the broker, take the dump, and load its cuts."""
        settings = broker_settings(self.release, self.seed)
        addresses = Addresses.free()
        broker = Broker(self.programs, addresses, settings, self.folder / "live")
        with Asker(self.programs, addresses.bootstrap) as ask:
            self._act(broker, ask, addresses.bootstrap, dump)
            dump.take(broker.log_dir)
            dump.describe(self.release, settings, self._about())
            printed = dump.print_segments(self.programs, self.release)
            self.say(f"{printed} segments printed by Kafka's tool")
            for number, cut in enumerate(self._choose(dump), 1):
                self._load(number, cut, dump, settings, addresses, ask)
        self._add_forgotten(dump)

    def _about(self) -> str:
        return (
            f"{self.seconds} seconds of random acts on one broker, seed {self.seed}. The first cut "
            "is where the broker was asked last, while it ran."
        )

    def _act(self, broker: Broker, ask: Asker, bootstrap: str, dump: TakenDump) -> None:
        """Two troupes one after the other; the first leaves no goodbye, nor maybe the broker."""
        draw = random.Random(self.seed)
        first, second = (Troupe(self.folder / f"troupe-{name}.txt") for name in "ab")
        broker.format(self.release)
        broker.start()
        broker.answer(lambda: ask("Metadata", {"topics": None}))  # it is up
        half = self.seconds // 2
        try:
            first.begin(self.programs, self.release, bootstrap, self.seed * 2, half)
            first.wait_until_still(half)
            if draw.random() < 0.6:
                self._restart(broker, ask, draw)
            second.begin(
                self.programs, self.release, bootstrap, self.seed * 2 + 1, self.seconds - half
            )
            time.sleep(draw.uniform(1, 8))
            first.kill()
            second.wait_until_still(self.seconds - half)
            if not self._ask_last(broker, ask, dump):
                second.kill()  # some group never comes to rest, but no session ends at once
                if not self._ask_last(broker, ask, dump):
                    self.say("the running broker's answers are not compared")
        finally:
            first.kill()
            second.kill()
            if draw.random() < 0.5:
                broker.kill()
            broker.stop()
        dump.timeline.write_text("\n".join(sorted([*first.told(), *second.told()])) + "\n")

    def _restart(self, broker: Broker, ask: Asker, draw: random.Random) -> None:
        if draw.random() < 0.5:
            self.say("the broker is killed and started again")
            broker.kill()
        else:
            self.say("the broker is stopped and started again")
            broker.stop()
        broker.start()
        broker.answer(lambda: require_loaded(ask))

    def _ask_last(self, broker: Broker, ask: Asker, dump: TakenDump) -> bool:
        """Ask until nothing changes any more: what was answered then is what the log tells.

        Returns:
            Whether it came to that.
        """

        def once() -> Answer:
            state = state_of(ask, self.release, now_ms())
            ends = end_offsets(ask)
            time.sleep(_BETWEEN_ANSWERS)
            again = state_of(ask, self.release, state["at"])
            changed = changes(state, again)
            if changed or ends != end_offsets(ask) or not is_settled(state):
                raise NotYetError(f"something still changes: {', '.join(changed) or 'the logs'}")
            cut = {name: end for name, end in ends.items() if name.startswith(_CUT_TOPICS)}
            told = without_unrecorded(state, self.release)
            dump.add_cut(0, ChosenCut("end", None, cut).told(), told)
            return state

        try:
            dump.add_state(broker.answer(once, _SECONDS_TO_SETTLE))
        except BrokerFailedError as never:
            self.say(str(never))
            return False
        return True

    def _add_forgotten(self, dump: TakenDump) -> None:
        """Add to what the running broker answered last what only loading brings back."""
        last, whole = (dump.cut_state(number) for number in (0, 1))
        if last is None or whole is None or dump.cut_ends(0) != dump.cut_ends(1):
            return
        texts = printed_lines(dump.printed(self.release))
        keys = {key for lines in texts.values() for key in forgotten_keys(lines)}
        told, words = with_forgotten(last, whole, keys, self.release)
        if words:
            self.say(f"the running broker forgot {', '.join(words)}")
            dump.replace_cut_state(0, told)

    def _choose(self, dump: TakenDump) -> list[ChosenCut]:
        logs = {
            path.name: batches_of(path)
            for topic in _CUT_TOPICS
            for path in sorted(dump.log_dir.glob(f"{topic}-*"))
        }
        return choose_cuts(logs, log_starts(dump.log_dir), self.cuts, random.Random(self.seed))

    def _load(
        self,
        number: int,
        cut: ChosenCut,
        dump: TakenDump,
        settings: dict[str, str],
        addresses: Addresses,
        ask: Asker,
    ) -> None:
        """Load a cut with a broker that knows of no transaction: what is pending stays so."""
        folder = self.folder / f"load-{number:02}"
        broker = Broker(self.programs, addresses, loading_settings(settings), folder)
        forgotten = {path.name: 0 for path in dump.log_dir.glob(f"{_FORGOTTEN}-*")}

        def once() -> Answer:
            announce_topics(ask, now_ms())
            return state_of(ask, self.release, now_ms())

        truncated_copy(dump.log_dir, broker.log_dir, {**cut.end_offsets, **forgotten})
        broker.start()
        try:
            state = broker.answer(once, _SECONDS_TO_LOAD)
        except BrokerFailedError as never:
            self.say(f"cut {number} ({cut.kind}) cannot be loaded: {never}")
        else:
            dump.add_cut(number, cut.told(), state)
        finally:
            broker.kill()


def now_ms() -> int:
    """Return the time in epoch milliseconds."""
    return time.time_ns() // 1_000_000
