"""A dump decoded into a workspace by this process, without Spark: the tasks it would run."""

from __future__ import annotations

from pathlib import Path

from analytics.decode.empty import empty_parts
from analytics.decode.run.decoding import Decoding
from analytics.decode.run.manifest import decode_manifest
from analytics.decode.run.reconciliation import reconciliation_of
from analytics.decode.tasks import Settings, packed, run_task
from analytics.dump.copies.plan import plan
from analytics.workspace import DECODED, DIVERGED, Workspace


def decoded_here(inputs: list[str], folder: Path) -> Workspace:
    """Decode INPUTs into a workspace."""
    planned = plan(inputs)
    space = Workspace(str(folder))
    staging = space.prepare()
    settings = Settings(staging.location)
    tasks = [
        run_task(number, [(each, planned.slices[each]) for each in chosen], settings)
        for number, chosen in enumerate(packed(planned.slices))
    ]
    parts = [part for task in tasks for part in task.parts]
    written = {part.table for part in parts}
    empty = empty_parts(staging.location, DECODED, written)
    decoding = Decoding([*parts, *empty], [each for task in tasks for each in task.slices], [])
    accounts = reconciliation_of(planned, decoding)
    manifest = decode_manifest(inputs, {}, planned, decoding, accounts)
    staging.publish(decoding.parts, [DECODED, DIVERGED], manifest)
    return space
