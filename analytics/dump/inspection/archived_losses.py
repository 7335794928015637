"""What archived rows of a partition lack: offsets that no row has, and rows that do not decode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.dump.inspection.losses import Loss, lacks, loss_rows, merged
from analytics.dump.inspection.survey import NOT_ARCHIVED, NOT_DECODED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

UNDECIDED = "archived rows do not show transactions"
"""Why a commit of archived rows may never have taken effect."""

_WHY = {
    NOT_ARCHIVED: "no archived row",
    NOT_DECODED: "a row that cannot be decoded",
}


def archived_losses(gaps: Iterable[Mapping[str, Any]], *, is_whole: bool = False) -> list[Loss]:
    """Return what may be lost of a partition of archived rows.

    Args:
        gaps: As the manifest has them.
        is_whole: Nothing was left out of the archive, so that an offset without a row is no loss.
    """
    return merged(
        Loss(gap["first_offset"], gap["end_offset"], _WHY[gap["kind"]])
        for gap in gaps
        if not (is_whole and gap["kind"] == NOT_ARCHIVED)
    )


def with_archived_losses(manifest: Mapping[str, Any], *, is_whole: bool = False) -> dict[str, Any]:
    """Return a manifest that says what its partitions of archived rows lack.

    Args:
        manifest: Of decoded tables.
        is_whole: As `archived_losses` takes it.
    """
    rows = []
    for row in manifest["partitions"]:
        if row.get("copy", "") is not None:
            rows.append(row)
            continue
        losses = archived_losses(row["gaps"], is_whole=is_whole)
        said = lacks(row["topic"], row["partition"], losses) if losses else None
        rows.append({**row, "losses": loss_rows(losses), "lacks": said})
    return {**manifest, "partitions": rows}
