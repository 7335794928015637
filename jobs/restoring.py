"""Offsets of the past given back: the files are written, and what is said of them.

Their folder is there whole or not at all, and none but files that `restore` wrote are replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from analytics.dump.files.storage import storage_of
from analytics.errors import AbsentFileError, InputUnreadableError, OutputRefusedError
from analytics.gaps.gap import gap_documents, words_of
from analytics.locations import join, local_path
from analytics.questions.restore.question import OFFSETS
from analytics.replay.dump.followed_lines import lines_metadata
from analytics.replayed.replayed_workspace import answered_instant
from analytics.side_files import read_bytes
from analytics.workspace import RESTORED
from jobs.cli.exit_codes import CANNOT_TELL
from jobs.cli.incomplete_groups import groups_exit_code
from jobs.cli.written_text import StagedFile, remove_file, write_text
from jobs.workspaces.replaying import lines_in_words
from reports.answers.restore import counts_of, restore_files, restore_text
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.questions.question import Answer
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed
    from reports.layout.output_format import OutputFormat
    from reports.row_formats import Text

SCHEMA_VERSION = 1


def write_restored(
    console: Console,
    past: Replayed,
    present: Replayed,
    answer: Answer,
    out: str,
    output_format: OutputFormat,
    *,
    include_live: bool,
) -> tuple[Text, int]:
    """Write the folder; return what goes to stdout, and the exit code.

    Args:
        console: Where it is said what is restored against what.
        past: What offsets are of.
        present: What they are given back to.
        answer: To the question `restore`.
        out: The folder.
        output_format: Of the text.
        include_live: Groups that have moved on since are rewound.

    Raises:
        OutputRefusedError: The folder holds something else.
    """
    console.say(f"as of {past.instant} of {', '.join(past.inputs)}")
    console.say(f"against {present.instant} of {', '.join(present.inputs)}")
    metadata = {**_metadata(past, present), "include_live": include_live}
    metadata |= {
        "cannot_tell": list(answer.cannot_tell),
        "gaps": gap_documents((*answer.gaps, *past.gaps)),
        "left_out": list(words_of(past.left_out)),
    }
    title = f"Committed offsets of {', '.join(past.inputs)} as of {past.instant}"
    followed = _followed(past)
    _write_folder(
        out,
        restore_files(answer.tables, "; ".join([title, *followed])),
        {
            "schema_version": SCHEMA_VERSION,
            **metadata,
            "counts": counts_of(answer.tables[OFFSETS]),
        },
    )
    text = restore_text(
        answer.tables, output_format, metadata, with_offsets=console.verbose, notes=followed
    )
    unsure = CANNOT_TELL if answer.rows_cannot_tell else 0
    # What cannot be told (3) goes before a group that is not there (1).
    code = max(groups_exit_code(answer.groups), unsure, past.exit_code, present.exit_code)
    return text, code


def _metadata(past: Replayed, present: Replayed) -> dict[str, Any]:
    """Return what the answer says of the two states that it was asked of."""
    return {
        "as_of": answered_instant(past),
        "input": list(past.inputs),
        "against": {
            "as_of": answered_instant(present),
            "input": list(present.inputs),
            "left_out": list(words_of(present.left_out)),
        },
        "kafka_version": past.release,
        "lines": lines_metadata(past.lines),
        **({"uncertain": list(words_of(past.uncertain))} if past.uncertain else {}),
    }


def _followed(past: Replayed) -> list[str]:
    """Say which lines the offsets are from, where these did not survive."""
    homes = past.tables.read("groups", ["coordinator_partition"])["coordinator_partition"]
    wanted = set(homes.to_pylist())
    lines = [each for each in past.lines if each.topic == CONSUMER_OFFSETS]
    return list(lines_in_words((each for each in lines if each.partition in wanted), past.instant))


def _write_folder(out: str, files: Mapping[str, str], about: Mapping[str, Any]) -> None:
    """Write the files; those of an earlier run that are no more are removed.

    Args:
        out: The folder.
        files: Their text by name.
        about: What `restore.json` says besides.

    Raises:
        OutputRefusedError: The folder holds something else.
    """
    earlier = check_folder(out)
    with ExitStack() as staged:
        new: list[StagedFile] = []
        for name, text in files.items():
            new.append(StagedFile(join(out, name), [text.encode()]))
            staged.callback(new[-1].discard)
        # Without this file nobody takes the folder for finished.
        for name in (RESTORED, *earlier):
            remove_file(join(out, name))
        for each in new:
            each.publish()
    write_text(
        join(out, RESTORED),
        json.dumps({**about, "files": sorted(files)}, indent=1, ensure_ascii=False),
    )


def check_folder(out: str) -> list[str]:
    """Return the files of an earlier run.

    Raises:
        OutputRefusedError: The folder is none, or holds something else.
    """
    folder = local_path(out)
    storage = storage_of(folder)
    entry = storage.entry(folder)
    if entry is None:
        return []
    if not entry.is_folder:
        raise OutputRefusedError(f"{out} is a file, not a folder")
    if not storage.list(folder):
        return []
    try:
        files = json.loads(read_bytes(join(folder, RESTORED)))["files"]
    except (AbsentFileError, InputUnreadableError, ValueError, KeyError, TypeError) as error:
        raise OutputRefusedError(
            f"{out} is not empty and was not written by restore: choose another folder"
        ) from error
    return [str(name) for name in files if PurePath(str(name)).name == name]
