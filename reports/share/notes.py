"""What is said below the backlog of share groups: what words mean, and what is assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reports.layout.nothing import nothing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reports.row_formats import Section

_WITHOUT_LIMITS = ("prunable", "limits", "steps")
"""Tables that no setting has a say in, or that name them themselves."""
NOTHING = "No share group asked for has partitions."


def share_notes(
    sections: Sequence[Section], said: Mapping[str, Any], asked: str | None
) -> list[str]:
    """Return paragraphs: what the words that are shown mean, and which settings are assumed.

    Args:
        sections: What is shown; the backlog first.
        said: What is said beside it.
        asked: The one table that was asked for; None for all.
    """
    if asked is not None:
        sections = [sections[0], *(each for each in sections[1:] if each.name == asked)]
    words = set(sections[0].rows["status"].to_pylist())
    if not words:
        return [nothing(NOTHING, said)]
    meanings = [f"{word}: {text}" for word, text in said["statuses"].items() if word in words]
    broken = [
        *_meanings(sections, "faults", "fault", said["fault_words"]),
        *_meanings(sections, "steps", "verdict", said["step_verdicts"]),
        *_meanings(sections, "limits", "verdict", said["limit_verdicts"]),
    ]
    assumed = [each for each in said["settings"] if each.endswith("assumed)")]
    notes = [
        [*(meanings if asked in {None, "backlog"} else ()), *broken],
        assumed if asked not in _WITHOUT_LIMITS else [],
    ]
    return ["\n".join(each) for each in notes if each]


def _meanings(
    sections: Sequence[Section], name: str, column: str, words: Mapping[str, str]
) -> list[str]:
    shown_ones = {
        word for each in sections if each.name == name for word in each.rows[column].to_pylist()
    }
    return [f"{word}: {text}" for word, text in words.items() if word in shown_ones]
