"""Every command's text fits the terminal it is printed on, however wide that is.

What commands answer, what they say beside it and what they refuse with, of every bundled dump. Rows
for programs (JSON, CSV) have no width, and Markdown and HTML are laid out by who shows them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from itertools import cycle, product
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import pytest

from analytics.workspace import Workspace
from jobs.cli.main import cli
from reports.layout.output_format import OutputFormat, Paper
from reports.run_summary import decode_summary
from tests.brokers.truncation import truncate
from tests.support.commands_on_a_dump import declared
from tests.support.recorded_cluster import RECORDING, recorded_cluster

if TYPE_CHECKING:
    from tests.conftest import Groupscope

ROOT: Final = Path(__file__).resolve().parents[2]
LONG: Final = pytest.mark.long
WIDTHS: Final = (80, 120, 200)
FAILOVER, SMALL = "kafka-4.3.1-failover", "flapping-indexer"
DUMPS: Final = {
    SMALL: ROOT / "examples" / SMALL,
    **{each.parent.name: each.parent for each in (ROOT / "tests/data/dumps").glob("*/about.json")},
    FAILOVER: ROOT / "examples" / FAILOVER,
}
ASKED: Final = {
    "snapshot": ("--bootstrap-server {cluster} --out {out}",),
    "inspect": ("{dump}", "{dump} --verbose"),
    "decode": ("{dump} --out {out}",),
    "replay": ("{workspace} --as-of -60s --out {out}",),
    "describe": ("{workspace}", "{workspace} --members --verbose", "{workspace} --state"),
    "list": ("{workspace} --state --type",),
    "timeline": ("{workspace} --group *",),
    "diff": ("{early} {workspace}", "{workspace} --from -60s --to end"),
    "restore": (
        "{early} --group * --against {workspace} --out {out}",
        "{early} --group * --against {workspace} --out {out} --include-live --verbose",
    ),
    "expiration": ("{workspace}",),
    "balance": ("{workspace} --history",),
    "rebalances": ("{workspace}",),
    "assign": (
        "examples/assign-case.json --assignor cooperative-sticky",
        "examples/assign-case.json --assignor range",
    ),
    "lag": ("{workspace} --history", "{workspace} --by member"),
    "region": ("examples/region-checkpoints.jsonl --dump {workspace}",),
    "share": ("{workspace}",),
    "usage": ("{workspace}",),
    "audit": ("{workspace} --out {out}",),
    "report": ("{audited}", "{audited} --format text"),
    "trend": ("{audited}", "{early_audited} {audited} --out {out}"),
    "forensics": ("{workspace} --around {around} --group * --out {out}",),
}
"""What each command is asked; names in braces are places, or an instant, of a dump."""
_CHAINS: Final = "examples/share-chains --dialect checkpoint-delta"
TABLES_OF: Final = {
    ("lag", "topic_readers"): "{workspace} --by topic",
    ("lag", "group_capacity"): "{workspace} --by group",
    ("lag", "lag_growth"): "{workspace} --since {early}",
    **{
        ("share", table): _CHAINS
        for table in ("share_partitions", "share_batches", "share_checkpoints", "chain")
    },
    ("share", "share_readings"): "{dump} --dialect kip-932-text",
}
"""What tables are asked of that the first question of their command does not have."""
OF_TWO_DUMPS: Final = {("usage", "usage_growth")}
"""Tables that want an earlier dump, too."""
REFUSED: Final = ("", "no-such-input", "--no-such-option", "--format no-such-format", "--help")
"""What every command refuses, or says of itself."""
INSTANTS: Final = {FAILOVER: "2026-11-21T09:20:36Z", "kafka-3.9.2-classic": "2026-11-21T09:18:00Z"}
MADE: Final = {
    "workspace": "list {dump} --out",
    "early": "replay {workspace} --as-of -60s --out",
    "audited": "audit {workspace} --out",
    "early_audited": "audit {early} --out",
}
"""What makes a place of a dump."""
_TAKE_LONG: Final = {
    *("timeline", "usage", "expiration", "diff", "restore", "audit", "report", "trend"),
    "forensics",
}
"""Of these a small dump is asked when it is to be quick."""
_WHOLE: Final = re.compile(r" *(?:- )?\S+(?: \\)?| *\$ .*| *(?:[A-Z_]+=\S+ )*(?:groupscope|sh) .*")
"""What may be wider than the page: a single word, as a path, and a command that is to be pasted."""
_MOST_LINES_A_ROW = 8


def too_wide(text: str, width: int) -> list[str]:
    """Return the lines that do not fit, and could."""
    return [each for each in text.splitlines() if len(each) > width and not _WHOLE.fullmatch(each)]


def tables_of(command: str) -> tuple[str, ...]:
    """Return the choices of its `--table`."""
    made = cli.get_command(click.Context(cli), command)
    assert made is not None
    choices = [each.type.choices for each in made.params if isinstance(each.type, click.Choice)
               and each.name == "table"]  # fmt: skip
    return tuple(choices[0]) if choices else ()


def questions() -> Iterator[tuple[str, str]]:
    """Yield every command with the words behind it: its questions, and each table of its."""
    for command, asked in ASKED.items():
        yield from ((command, each) for each in asked)
        for table in tables_of(command):
            if (command, table) in OF_TWO_DUMPS:
                continue
            yield command, f"{TABLES_OF.get((command, table), asked[0])} --table {table}"


def audits_again(command: str, words: str) -> bool:
    """Return whether a question answers all there is once more, to show one table of it."""
    return command in ("forensics", "audit") and "--table" in words


def is_quick(command: str, words: str) -> bool:
    """Return whether a question is one of the quick tests, at one width."""
    return not audits_again(command, words) and "{early_audited}" not in words


QUESTIONS: Final = list(questions())
Places = Callable[[str, str], list[str]]


@pytest.fixture(scope="module")
def places(
    groupscope: Groupscope,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Places:
    """Fill words of a command that is asked of a dump; what it needs is made when it is named."""
    made: dict[tuple[str, str], str] = {}
    numbers = iter(range(1_000_000))
    folder = tmp_path_factory.mktemp("places")

    def place(dump: str, name: str) -> str:
        if name == "out":
            return str(folder / f"out-{next(numbers)}")
        if (dump, name) not in made:
            made[dump, name] = _made(dump, name)
        return made[dump, name]

    def _made(dump: str, name: str) -> str:
        if name == "dump":
            return str(DUMPS[dump])
        if name == "around":
            return INSTANTS.get(dump, "-30s")
        if dump == FAILOVER and name in ("workspace", "audited"):
            return str(request.getfixturevalue(f"failover_{name}"))
        out = folder / dump / name
        out.parent.mkdir(exist_ok=True)
        ran = groupscope(*filled(dump, MADE[name]), out, "--quiet")
        assert ran.returncode in (0, 1, 3), ran.stderr
        return str(out)

    def filled(dump: str, words: str) -> list[str]:
        return [
            re.sub(r"{(\w+)}", lambda found: place(dump, found[1]), each) for each in words.split()
        ]

    return filled


@pytest.fixture
def fits(groupscope: Groupscope, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Ask, and hold what is printed against the width of the terminal."""

    def asked(width: int, *words: str, codes: tuple[int, ...] = (0, 1, 3)) -> None:
        monkeypatch.setenv("COLUMNS", str(width))
        ran = groupscope(*words, cwd=ROOT)
        assert ran.returncode in codes, ran.stderr
        assert ran.stdout or ran.stderr or "--table" in words or words[0] == "report"
        assert too_wide(ran.stdout, width) == []
        assert too_wide(ran.stderr, width) == []

    return asked


def test_every_command_is_asked() -> None:
    """A new command has to be asked here."""
    assert list(ASKED) == cli.list_commands(click.Context(cli))
    assert set(TABLES_OF) <= {(each, table) for each in ASKED for table in tables_of(each)}


@pytest.mark.parametrize("command", ASKED)
def test_what_it_refuses_with_fits(command: str, fits: Callable[..., None]) -> None:
    for width in WIDTHS:
        for words in REFUSED:
            fits(width, command, *words.split(), codes=(0, 1, 2, 3))


@pytest.mark.parametrize(
    ("command", "words", "width"),
    [
        pytest.param(
            command,
            words,
            width,
            marks=() if width == quick and is_quick(command, words) else LONG,
        )
        for (command, words), quick in zip(
            (each for each in QUESTIONS if each[0] != "snapshot"), cycle(WIDTHS), strict=False
        )
        for width in ((quick,) if audits_again(command, words) else WIDTHS)
    ],
)
def test_no_line_is_wider_than_the_terminal(
    request: pytest.FixtureRequest,
    places: Places,
    fits: Callable[..., None],
    command: str,
    words: str,
    width: int,
) -> None:
    is_quick = request.node.get_closest_marker("long") is None
    dump = SMALL if is_quick and command in _TAKE_LONG else FAILOVER
    fits(width, command, *places(dump, words))


@pytest.mark.long
@pytest.mark.parametrize("command", [each for each in ASKED if each != "snapshot"])
@pytest.mark.parametrize("dump", [each for each in DUMPS if each != FAILOVER])
def test_nor_is_one_of_another_dump(
    places: Places, fits: Callable[..., None], dump: str, command: str
) -> None:
    """Each question at every width in turn."""
    of_command = [
        words for name, words in QUESTIONS if name == command and not audits_again(name, words)
    ]
    for words, width in zip(of_command, cycle(WIDTHS), strict=False):
        # A dump without share groups has no topic that a dialect reads.
        codes = (0, 1, 2, 3) if "--dialect" in words else (0, 1, 3)
        fits(width, command, *places(dump, words), codes=codes)


@pytest.mark.long
def test_nor_is_one_of_two_dumps(places: Places, fits: Callable[..., None], tmp_path: Path) -> None:
    broker = tmp_path / "earlier" / "broker-2"
    shutil.copytree(DUMPS[FAILOVER] / broker.name, broker)
    for partition, end in (("__consumer_offsets-9", 120), ("__cluster_metadata-0", 100)):
        truncate(broker / partition, end)
    earlier = str(tmp_path / "workspace")
    fits(80, "list", str(broker), "--out", earlier)
    for (command, table), width in product(OF_TWO_DUMPS, WIDTHS):
        words = ("--since", earlier, "--table", table)
        fits(width, command, *places(FAILOVER, "{workspace}"), *words)


@pytest.mark.parametrize("width", [80, *(pytest.param(each, marks=LONG) for each in WIDTHS[1:])])
def test_nor_is_one_of_a_snapshot(fits: Callable[..., None], tmp_path: Path, width: int) -> None:
    with recorded_cluster(RECORDING) as address:
        fits(width, "snapshot", "--bootstrap-server", address, "--out", str(tmp_path / "dump"))


@pytest.mark.parametrize("width", WIDTHS)
def test_what_was_decoded_fits_with_lines_that_did_not_survive(
    failover_workspace: Path, width: int
) -> None:
    manifest = Workspace(str(failover_workspace)).manifest()
    text = decode_summary(manifest, OutputFormat("text", paper=Paper(width)))
    assert "only on the lost line of broker-1" in text
    assert too_wide(text, width) == []


HINTS: Final = {
    each["asked"].replace("{examples}", "examples"): each.get("takes_long", False)
    for each in declared()["hints"]
    if not {"{copy}", "{shares}"} & {*each["asked"].split()}
}
"""What ends with advice; whether it takes long."""


@pytest.mark.parametrize(
    ("asked", "width"),
    [
        pytest.param(asked, width, marks=() if width == WIDTHS[0] and not takes_long else LONG)
        for asked, takes_long in HINTS.items()
        for width in WIDTHS
    ],
)
def test_nor_is_advice(places: Places, fits: Callable[..., None], asked: str, width: int) -> None:
    command, *words = asked.split()
    fits(width, command, *places(FAILOVER, " ".join(words)), codes=(0, 1, 2, 3))


@pytest.mark.parametrize(
    "asked",
    [
        "lag {workspace}",
        "diff {early} {workspace}",
        *(
            pytest.param(each, marks=LONG)
            for each in ("expiration {workspace} --table what_if", "expiration {workspace}")
        ),
    ],
)
def test_a_row_is_a_line_and_not_a_line_for_each_value(
    groupscope: Groupscope, places: Places, asked: str
) -> None:
    words = places(FAILOVER, asked)
    rows = groupscope(*words, "--format", "csv", "--quiet").stdout
    lines = groupscope(*words).stdout
    assert len(lines.splitlines()) <= _MOST_LINES_A_ROW * len(rows.splitlines()) + 60


def test_a_wider_terminal_shows_more_columns_and_a_file_is_as_wide_as_ever(
    groupscope: Groupscope,
    failover_workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    head: dict[int, int] = {}
    for width in (80, 240):
        monkeypatch.setenv("COLUMNS", str(width))
        head[width] = len(groupscope("lag", failover_workspace).stdout.splitlines()[0].split())
    assert head[80] < head[240]
    groupscope("lag", failover_workspace, "--output", tmp_path / "lag.txt")
    lines = (tmp_path / "lag.txt").read_text(encoding="utf-8").splitlines()
    assert 80 < max(map(len, lines)) <= 120
