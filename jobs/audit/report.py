"""What `report` does: the page of an audited workspace in one of its forms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from analytics.errors import OutputRefusedError
from analytics.workspace import PAGE
from jobs.audit.page import page_of_audit
from jobs.workspaces.written_text import write_text
from reports.page.forms import html_of, json_of, markdown_of, text_of

if TYPE_CHECKING:
    from jobs.cli.console import Console

FORMS: Final = {"html": html_of, "text": text_of, "markdown": markdown_of, "json": json_of}


def report_of(console: Console, workspace: str, output: str | None, output_format: str) -> str:
    """Return what goes to stdout; a file is written where one is asked for.

    Raises:
        GroupscopeError: The workspace was not audited, or the file cannot be written.
    """
    page = page_of_audit(workspace)
    text = FORMS[output_format](page)
    if output_format == "html" and output is None:
        output = str(Path(workspace) / PAGE)
    if output is None:
        return text
    try:
        path = write_text(Path(output), text)
    except OSError as error:
        raise OutputRefusedError(f"{output} cannot be written: {error.strerror}") from error
    console.detail(f"report: {path}")
    return str(path)
