"""What goes wrong with a schema file: one error that says where."""

from __future__ import annotations


class SchemaError(Exception):
    """A schema file, or a model built by hand, that makes no sense.

    Attributes:
        reason: What is wrong, in words.
        field: Path of the field it is wrong with, outermost first ("value.members.clientId"); may
            be empty when the whole file is meant.
        file: Name of the file within `schemas/`; empty for a model that came from no file.
    """

    def __init__(self, reason: str, *, field: str = "", file: str = "") -> None:
        super().__init__(": ".join(part for part in (file, field, reason) if part))
        self.reason = reason
        self.field = field
        self.file = file

    def inside(self, parent: str) -> SchemaError:
        """Return the same error as seen from the structure that holds the field."""
        path = ".".join(part for part in (parent, self.field) if part)
        return SchemaError(self.reason, field=path, file=self.file)

    def in_file(self, file: str) -> SchemaError:
        """Return the same error, naming the file it was found in."""
        return SchemaError(self.reason, field=self.field, file=file)
