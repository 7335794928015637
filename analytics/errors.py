"""What a person can put right, or must be told: one line each, never a traceback.

Bad bytes are no errors: they become damage and undecoded rows. `jobs.cli.main` gives each class its
exit code.
"""

from __future__ import annotations


class GroupscopeError(Exception):
    """Something expected went wrong; the message names the file and what to do about it."""


class InputNotRecognizedError(GroupscopeError):
    """An INPUT is none of the forms known: says what was looked for and what was found."""


class AbsentFileError(InputNotRecognizedError):
    """A file that an option names, or that should be beside others, is not there."""


class InputUnreadableError(GroupscopeError):
    """An INPUT, or a file in it, is there and cannot be read."""


class ReadFailedError(GroupscopeError):
    """A read failed that says nothing of the dump: it may succeed elsewhere, or later.

    A task that raises it is tried again by Spark. It is never caught to carry on without the file.
    """


class SettingRefusedError(GroupscopeError):
    """A setting of a question is at odds with another, or with the dump: it is asked wrongly."""


class OutputRefusedError(GroupscopeError):
    """The output folder is something that must not be written over."""


class WorkspaceError(GroupscopeError):
    """A folder taken for a workspace was never finished, or is of another schema version."""


class CannotTellError(GroupscopeError):
    """The dump does not hold the answer; the message says what is missing."""


class InstallationError(GroupscopeError):
    """The packages of groupscope do not come from one place, or a part of them is missing."""


class ClusterUnfitError(GroupscopeError):
    """Executors of a cluster do not see what they have to, or are not set up as this side is."""


class EnvironmentUnfitError(GroupscopeError):
    """This machine, or the session that was given, cannot do what is asked."""


class ClusterUnreachableError(GroupscopeError):
    """A running Kafka cluster does not answer, refuses, or tells nothing of what was asked for."""
