"""Two states to be held against each other: of one dump, of two lines of it, or of two dumps."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from analytics.decode.selection import OF_NAMES
from analytics.dump.files.inputs import recognize
from analytics.gaps.gap import Gap, gap, words_of
from analytics.replay.dump.choices import END, BeforeEnd
from analytics.replay.dump.followed_lines import lines_metadata
from analytics.replayed.replayed_workspace import answered_instant
from jobs.cli.console import HeldConsole
from jobs.spark.session import one_session
from jobs.workspaces.replayed import Replayed, replayed

if TYPE_CHECKING:
    from jobs.cli.console import Console

# `--since WORKSPACE`: the state of an earlier dump of the same brokers.

_NAMES: Final = (*OF_NAMES, "broker_configs", "config")
"""Options that hold for the earlier dump, too."""


@contextmanager
def earlier_state(
    console: Console, since: str | None, needs: tuple[str, ...], options: Mapping[str, Any]
) -> Iterator[Replayed | None]:
    """Hand over the state of an earlier workspace; None where none is asked for.

    Args:
        console: Where it is said what is to be known of it.
        since: The workspace.
        needs: Tables that are read.
        options: Of `replayed`, for the dump that is asked about.

    Raises:
        WorkspaceError: It is no workspace.
    """
    if since is None:
        yield None
        return
    kept = {name: each for name, each in options.items() if name in _NAMES}
    held = HeldConsole(console.quiet, console.verbose, console.progress)
    with replayed(held, inputs=[since], needs=needs, has_hint=False, **kept) as state:
        # What the filters leave out is part of the answer, with all else that cannot be told.
        stated = {f"cannot tell: {each.words}" for each in state.left_out}
        held.held = [(how, each) for how, each in held.held if each not in stated]
        held.release(console, lambda message: f"--since {since}: {message}")
        yield state


_LATER = ("kafka_version", "topic_ids", "assume", "broker_configs", "config", "max_undecoded")
"""Options that a replay takes, and decoding does not."""


@dataclass(frozen=True)
class Side:
    """One of the two.

    Attributes:
        inputs: As given.
        as_of: As the option has it, or None: a workspace's own instant, the end of a dump.
        ends: End offsets by topic and partition.
        prefer_copy: The copy whose line is followed, where copies disagree.
    """

    inputs: tuple[str, ...]
    as_of: int | BeforeEnd | str | None = None
    ends: Mapping[tuple[str, int], int] = field(default_factory=dict)
    prefer_copy: str | None = None

    @property
    def is_end(self) -> bool:
        """Whether everything in a dump counts."""
        return self.as_of in (None, END) and not self.ends


@contextmanager
def compared_states(
    console: Console,
    first: Side,
    second: Side,
    *,
    needs: Sequence[str],
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> Iterator[tuple[Replayed, Replayed]]:
    """Hand over both states; one dump is decoded once.

    Args:
        console: Where it is told what is done.
        first: The one that is compared.
        second: The one it is compared with.
        needs: Names of the state tables that will be read.
        **options: As `group_options`, `input_options` (but `--prefer-copy`) and `spark_options`
            declare them, with `kafka_version`, `topic_ids` and `assume`.

    Raises:
        GroupscopeError: An INPUT or Spark is not what it has to be.
    """
    with ExitStack() as stack:
        stack.enter_context(one_session())
        if _is_one_dump(first, second, options):
            yield _of_one_dump(stack, console, first, second, needs, options)
            return
        states = [
            stack.enter_context(
                replayed(
                    console,
                    inputs=each.inputs,
                    needs=needs,
                    as_of=each.as_of,
                    ends=each.ends,
                    prefer_copy=each.prefer_copy,
                    has_hint=False,
                    **options,
                )
            )
            for each in (first, second)
        ]
        yield states[0], states[1]


def compared_metadata(before: Replayed, after: Replayed) -> dict[str, Any]:
    """Return what an answer says of the two states that it was asked of."""
    words = {"from": before, "to": after}
    return {
        "as_of": {word: answered_instant(each) for word, each in words.items()},
        "input": [*before.inputs, *(each for each in after.inputs if each not in before.inputs)],
        "kafka_version": {word: each.release for word, each in words.items()},
        "lines": {word: lines_metadata(each.lines) for word, each in words.items()},
    }


def left_out_of_both(before: Replayed, after: Replayed) -> dict[str, list[str]]:
    """Return what filters left out of the two states, as answers have it."""
    return {
        word: list(words_of(state.left_out)) for word, state in (("from", before), ("to", after))
    }


def gaps_of_both(before: Replayed, after: Replayed) -> list[Gap]:
    """Return what cannot be told of the two states whatever is asked.

    What of topics, settings and leaders is uncertain before, the answer to `diff` has already.
    """
    return [
        *(gap("in_earlier_state", why=each) for each in before.left_out),
        *(gap("in_later_state", why=each) for each in after.gaps),
    ]


def _is_one_dump(first: Side, second: Side, options: Mapping[str, Any]) -> bool:
    if (first.inputs, first.prefer_copy) != (second.inputs, second.prefer_copy):
        return False
    return not recognize(first.inputs, options.get("topic_partition")).workspaces


def _of_one_dump(
    stack: ExitStack,
    console: Console,
    first: Side,
    second: Side,
    needs: Sequence[str],
    options: Mapping[str, Any],
) -> tuple[Replayed, Replayed]:
    # Spark is heavy: where tables are ready it is not even imported.
    from jobs.workspaces.decoding import decode_into  # noqa: PLC0415

    later = {name: options[name] for name in _LATER if name in options}
    session = {name: options[name] for name in ("master", "conf") if name in options}
    of_names = {name: options[name] for name in OF_NAMES if name in options}
    apart = {*later, *session, *of_names}
    rest = {name: each for name, each in options.items() if name not in apart}
    # The replays say where they work; this is beside them.
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="groupscope-"))
    decoded = decode_into(
        folder,
        console,
        inputs=first.inputs,
        prefer_copy=first.prefer_copy,
        # What lies below the log start was the broker's at instants before it was deleted.
        keep_below_log_start=not (first.is_end and second.is_end),
        may_be_here=True,
        **rest,
        **session,
    )
    code = decoded.exit_code(None)

    def at(side: Side) -> Replayed:
        state = stack.enter_context(
            replayed(
                console,
                inputs=(folder,),
                needs=needs,
                as_of=side.as_of or END,
                ends=side.ends,
                has_hint=False,
                **of_names,
                **later,
                **session,
            )
        )
        return replace(state, inputs=first.inputs, exit_code=code or state.exit_code)

    return at(first), at(second)
