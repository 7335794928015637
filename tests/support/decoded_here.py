"""A dump decoded into a workspace by this process, without Spark: the tasks it would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.decode.decoding import Decoding, groups_only_there, kinds_of
from analytics.decode.elections import known_leaders
from analytics.decode.publication import published
from analytics.decode.tasks import Settings, empty_parts, packed, run_task
from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.files.inputs import recognize
from analytics.workspace import DECODED, Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def decoded_here(inputs: Sequence[str], folder: Path) -> Workspace:
    """Decode INPUTs into a workspace."""
    options = PlanOptions()
    found = recognize(inputs)
    planned = plan(found, options, known_leaders)
    space = Workspace(str(folder))
    staging = space.prepare()
    settings = Settings(staging.location)
    tasks = [
        run_task(number, [(each, planned.slices[each]) for each in chosen], settings)
        for number, chosen in enumerate(packed(planned.slices))
    ]
    parts = [part for task in tasks for part in task.parts]
    written = {part.table for part in parts}
    parts += empty_parts(staging.location, DECODED, written)
    slices = [each for task in tasks for each in task.slices]
    decoding = Decoding(
        parts,
        slices,
        [],
        kinds_of(planned, slices, []),
        groups_only_there=groups_only_there(planned, parts, staging.location),
    )
    published(staging, found, planned, decoding, settings, options)
    return space
