"""A workspace that is kept in another folder, too: what is asked of it there leaves it alone."""

from __future__ import annotations

from pyarrow import fs

from analytics.workspace import MANIFEST, Workspace


def copy_workspace(source: Workspace, target: str) -> None:
    """Copy a workspace into a folder, the manifest last; nothing where it is that folder.

    Raises:
        OutputRefusedError: The folder has content that is not ours.
    """
    space = Workspace(target)
    if space.root == source.root:
        return
    space.prepare().discard()
    space.remove(MANIFEST)
    for each in source.filesystem.get_file_info(fs.FileSelector(source.root)):
        if each.base_name == MANIFEST or each.base_name.startswith("."):
            continue
        space.remove(each.base_name)
        _copy(source, space, each)
    _copy(source, space, source.filesystem.get_file_info(source.path(MANIFEST)))


def _copy(source: Workspace, target: Workspace, entry: fs.FileInfo) -> None:
    place = target.path(entry.base_name)
    if entry.type is fs.FileType.Directory:
        target.filesystem.create_dir(place, recursive=True)
    fs.copy_files(
        entry.path,
        place,
        source_filesystem=source.filesystem,
        destination_filesystem=target.filesystem,
    )
