"""A stopped broker's log directory as a dump, with what Kafka's own tool prints of it."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.brokers.asking import Answer
from tests.brokers.broker import properties_text
from tests.brokers.programs import Programs
from tests.brokers.releases import Release
from tests.support.dump_log_manifest import BOOTSTRAP

COPY = "broker-1"
_STATE = "state.json.gz"
_DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
}
_NOT_TAKEN = shutil.ignore_patterns(
    "*.index", "*.timeindex", "*.txnindex", "*.deleted", "*.cleaned", "*.swap", ".lock", "*-delete"
)
_HEADING = "Dumping "
_SECONDS = 600


@dataclass(frozen=True)
class TakenDump:
    """A dump as it lies on disk, of one broker."""

    root: Path

    @property
    def log_dir(self) -> Path:
        """The copy of the log directory."""
        return self.root / COPY

    @property
    def timeline(self) -> Path:
        """What the acts said they did."""
        return self.root / "timeline.jsonl"

    def cut(self, number: int) -> Path:
        """The folder of a cut."""
        return self.root / "tools" / "replay" / f"{COPY}-{number:02}"

    def take(self, log_dir: Path) -> None:
        """Copy a log directory as an operator would."""
        shutil.copytree(log_dir, self.log_dir, ignore=_NOT_TAKEN)

    def describe(self, release: Release, settings: dict[str, str], about: str) -> None:
        """Write what the dump is, and the broker's settings."""
        told = {"release": release.number, "mode": "kraft", "brokers": [COPY], "about": about}
        (self.root / "about.json").write_text(json.dumps(told, indent=1) + "\n")
        (self.root / f"{COPY}.server.properties").write_text(properties_text(settings))

    def add_state(self, state: Answer) -> None:
        """Write what the broker answered last."""
        _write_json(self.root / "tools" / _STATE, state)

    def add_cut(self, number: int, cut: Answer, state: Answer) -> None:
        """Write a cut and what a broker answered that had loaded it."""
        folder = self.cut(number)
        folder.mkdir(parents=True)
        (folder / "cut.json").write_text(json.dumps(cut, indent=1) + "\n")
        _write_json(folder / _STATE, state)

    def cut_state(self, number: int) -> Answer | None:
        """Return what was answered at a cut; null where nobody answered."""
        path = self.cut(number) / _STATE
        return json.loads(gzip.decompress(path.read_bytes())) if path.exists() else None

    def replace_cut_state(self, number: int, state: Answer) -> None:
        """Write what counts as answered at a cut anew."""
        _write_json(self.cut(number) / _STATE, state)

    def cut_ends(self, number: int) -> dict[str, int]:
        """Return where the logs end at a cut."""
        ends: dict[str, int] = json.loads((self.cut(number) / "cut.json").read_text())[
            "end_offsets"
        ]
        return ends

    def printed(self, release: Release) -> Path:
        """Return the folder of what Kafka's tool printed."""
        tools = release.tools
        return (
            self.root / "tools" / ("dump-log" if tools == release else f"dump-log-{tools.number}")
        )

    def print_segments(self, programs: Programs, release: Release) -> int:
        """Have Kafka's tool print every segment of the internal topics; returns how many."""
        texts = self.printed(release)
        printed = 0
        for topic, decoder in _DECODERS.items():
            segments = sorted(
                str(path.relative_to(self.root))
                for pattern in ("*.log", "*.checkpoint")
                for path in self.log_dir.glob(f"{topic}-*/{pattern}")
                if path.name != BOOTSTRAP
            )
            if segments:
                options = ["--deep-iteration", "--print-data-log", "--files", ",".join(segments)]
                done = subprocess.run(
                    programs.tool("DumpLogSegments", decoder, *options),
                    cwd=self.root,
                    capture_output=True,
                    timeout=_SECONDS,
                    check=True,
                )
                for segment, text in texts_by_segment(done.stdout, segments):
                    path = texts / f"{segment}.txt.gz"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(gzip.compress(text, mtime=0))
                    printed += 1
        return printed


def texts_by_segment(printed: bytes, segments: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Part what the tool printed of several segments, by the headings that name them."""
    headings = {f"{_HEADING}{segment}".encode(): segment for segment in segments}
    current: str | None = None
    lines: list[bytes] = []
    for line in printed.splitlines(keepends=True):
        named = headings.get(line.rstrip(b"\r\n"))
        if named is not None:
            if current is not None:
                yield current, b"".join(lines)
            current, lines = named, []
        lines.append(line)
    if current is not None:
        yield current, b"".join(lines)


def _write_json(path: Path, told: Answer) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(told, ensure_ascii=False).encode(), mtime=0))
