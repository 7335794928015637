"""Guides start from a symptom, and blocks of a terminal are held against what commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.render_guides import EXIT_CODE, Ended, UnfitBlockError, rendered, shortened, steps_of

PRINTED = ["head", "a 1", "b 2", "c 3", "d 4", "sum 10"]


@pytest.mark.parametrize(
    "shown",
    [
        PRINTED,
        ["head", "..."],
        ["head", "...", "sum 10"],
        ["...", "sum 10"],
        ["head", "...", "b 2", "...", "sum 10"],
        ["head", "...", "b 2", "c 3", "...", "sum 10"],
        ["..."],
    ],
)
def test_a_page_may_leave_lines_out(shown: list[str]) -> None:
    assert shortened(PRINTED, shown) == shown


@pytest.mark.parametrize(
    ("shown", "becomes"),
    [
        (["head", "a 2", "...", "sum 10"], ["head", "a 1", "...", "sum 10"]),
        (["head", "...", "sum 11"], ["head", "...", "sum 10"]),
        (["head", "...", "c 30", "...", "sum 10"], ["head", "...", "c 3", "...", "sum 10"]),
        (["head", "...", "nothing alike", "...", "sum 10"], ["head", "...", "sum 10"]),
        # What hides nothing may not claim to.
        (["head", "...", *PRINTED[1:]], PRINTED),
        ([*PRINTED, "..."], PRINTED),
        (["head"], PRINTED),
        ([*PRINTED, "more"], PRINTED),
        ([], PRINTED),
    ],
)
def test_what_differs_comes_back_as_it_was_printed(shown: list[str], becomes: list[str]) -> None:
    assert shortened(PRINTED, shown) == becomes


def test_commands_of_a_page_run_in_order_in_one_folder(tmp_path: Path) -> None:
    page = (
        "# Page\n\n```console\n$ groupscope lag \\\n    examples/dump\nold\n```\n\nText.\n\n"
        "```console\n$ cat made\n$ groupscope audit DIR\n$ echo $?\n0\n```\n"
    )
    ran = []

    def run(command: str, folder: Path) -> Ended:
        ran.append(command)
        assert folder == tmp_path
        return Ended(3 if "audit" in command else 0, f"\nnew {len(ran)}  \n\nend\n")

    assert rendered(page, tmp_path, run) == (
        "# Page\n\n```console\n$ groupscope lag \\\n    examples/dump\nnew 1\n\nend\n```\n\n"
        "Text.\n\n```console\n$ cat made\nnew 2\n\nend\n\n"
        "$ groupscope audit DIR\nnew 3\n\nend\n$ echo $?\n3\n```\n"
    )
    assert ran == ["groupscope lag examples/dump", "cat made", "groupscope audit DIR"]
    assert (tmp_path / "examples" / "kafka-4.3.1-failover").is_dir()


def test_an_exit_code_that_is_not_zero_has_to_be_shown(tmp_path: Path) -> None:
    page = "```console\n$ groupscope lag DUMP\n```\n"
    assert rendered(page, tmp_path, lambda *_: Ended(3, "")) == (
        "```console\n$ groupscope lag DUMP\n$ echo $?\n3\n```\n"
    )


@pytest.mark.parametrize("block", ["groupscope lag DUMP\n", "$ rm -r DUMP\n"])
def test_a_block_that_cannot_be_run_is_an_error(block: str, tmp_path: Path) -> None:
    with pytest.raises(UnfitBlockError):
        rendered(f"```console\n{block}```\n", tmp_path, lambda *_: Ended(0, ""))


def guides(repository: Path) -> list[Path]:
    folder = repository / "docs" / "guides"
    return sorted(each for each in folder.glob("*.md") if each.name != "README.md")


def test_every_guide_is_found_from_the_list_of_symptoms(repository: Path) -> None:
    listed = (repository / "docs" / "guides" / "README.md").read_text("utf-8")
    assert sorted(re.findall(r"\]\(([\w-]+\.md)\)", listed)) == [
        each.name for each in guides(repository)
    ]


def test_a_guide_to_a_symptom_shows_commands_what_they_mean_and_what_to_do(
    repository: Path,
) -> None:
    index = (repository / "docs" / "guides" / "README.md").read_text("utf-8")
    symptoms, _, _ = index.partition("## Around it")
    for name in re.findall(r"\]\(([\w-]+\.md)\)", symptoms):
        page = (repository / "docs" / "guides" / name).read_text("utf-8")
        assert len([each for each in steps_of(page) if each.command != EXIT_CODE]) >= 3, name
        assert re.findall(r"^## (.*)$", page, re.MULTILINE) == [
            "Run",
            "What it means",
            "What to do",
        ], name
