"""Values that are too large to be sent along with tasks, or back: files beside the tables."""

from __future__ import annotations

import pickle
import uuid
from typing import Any

from analytics.workspace import open_location


def put_value(staging: str, value: object) -> str:
    """Write a value beside the tables, where all machines see it."""
    place = f"{staging}/between-{uuid.uuid4().hex}"
    filesystem, path = open_location(place)
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    with filesystem.open_output_stream(path) as stream:
        stream.write(pickle.dumps(value))
    return place


def get_value(place: str) -> Any:  # noqa: ANN401 - whatever was put there
    """Read a value that `put_value` wrote."""
    filesystem, path = open_location(place)
    with filesystem.open_input_stream(path) as stream:
        return pickle.loads(stream.read())  # noqa: S301 - a task of ours wrote it
