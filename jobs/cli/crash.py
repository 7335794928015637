"""An error of ours: the traceback goes into a file, and one line says which."""

from __future__ import annotations

from collections.abc import Sequence

from analytics.version import VERSION


def keep_traceback(error: Exception, arguments: Sequence[str]) -> str:
    """Write the traceback into a new temporary file; return the line that names it.

    The file holds the command line too, so names of groups and folders are in it: it is the
    person's to read before they send it.
    """
    # Imported here: no run that ends well needs them.
    import platform  # noqa: PLC0415
    import shlex  # noqa: PLC0415
    import tempfile  # noqa: PLC0415
    import traceback  # noqa: PLC0415

    with tempfile.NamedTemporaryFile(
        "w",
        prefix="groupscope-error-",
        suffix=".txt",
        delete=False,
        encoding="utf-8",
        # Bytes of the command line that are no UTF-8.
        errors="backslashreplace",
    ) as file:
        file.write(
            f"groupscope {VERSION}, Python {platform.python_version()}, {platform.platform()}\n"
        )
        file.write(f"groupscope {shlex.join(arguments)}\n\n")
        file.writelines(traceback.format_exception(error))
    words = str(error).splitlines()
    kind = type(error).__name__
    said = f"{kind}: {words[0]}" if words else kind
    return f"internal error, a bug in groupscope: {said[:300]} (traceback in {file.name})"
