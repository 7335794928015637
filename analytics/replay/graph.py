"""Tables made of tables: every step runs as soon as what it is made of is there, several at once.

Most steps are made of the records of some groups, bucket after bucket; some once, of what all
buckets gave. So a replay takes passes over the buckets: a pass makes what a step that is made once
takes from all of them, and the next one what takes that. Without steps in between there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from schemas import tables

_BEFORE_ALL: Final = -1


@dataclass(frozen=True)
class TableStep:
    """One thing to make.

    Attributes:
        output: Its name.
        function: What makes it; takes what `inputs` names, in that order.
        inputs: Names of what is given, or of what other steps make.
        once: It is made once for all buckets. Of what steps make of each bucket it takes a list.
        part_of: The table that its rows belong to, where that is not what `output` names.
        together: Puts together what the step made of several buckets. It is called as that comes:
            what a step that is made once takes then grows no more than that does.
        by_partition: Made once, of rows of buckets with `coordinator_partition`, it needs all of a
            partition and no other; it has rows of groups (`group_id`), of which a bucket takes its
            own. Of no rows it makes none.
        is_kept: Made of a bucket, it is made once: a later pass reads it again.
    """

    output: str
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    once: bool = False
    part_of: str | None = None
    together: Callable[[Sequence[Any]], Any] | None = None
    by_partition: bool = False
    is_kept: bool = False

    @property
    def table(self) -> str | None:
        """The table that it makes, or rows of; None where it makes something between."""
        return self.part_of or (self.output if self.output in tables() else None)


@dataclass(frozen=True)
class Pass:
    """What one pass over the buckets makes.

    Attributes:
        of_buckets: Steps for each bucket.
        gathered: What of it steps that are made once take, in this pass or later.
        tables: What of it are rows of tables.
        once: Steps after all buckets.
        keeps: What of it later passes read again.
        reads: What of earlier passes is read again.
    """

    of_buckets: tuple[TableStep, ...]
    gathered: frozenset[str]
    tables: frozenset[str]
    once: tuple[TableStep, ...]
    keeps: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()


def passes(steps: Sequence[TableStep]) -> list[Pass]:
    """Lay steps out in passes.

    Args:
        steps: Those that are needed, in any order.
    """
    makers = {step.output: step for step in steps}

    @cache
    def number(name: str) -> int:
        """Return in which pass something is there for the first time."""
        step = makers.get(name)
        before = [number(each) for each in step.inputs] if step else []
        if step is None or step.once:
            return max(before, default=_BEFORE_ALL)
        after = [
            number(each) + 1 if each in makers and makers[each].once else number(each)
            for each in step.inputs
        ]
        return max(0, max(after, default=0))

    of_buckets = {name for name, step in makers.items() if not step.once}
    taken = {each for step in steps if step.once for each in step.inputs} & of_buckets
    written = {name for name in of_buckets if makers[name].table}
    numbers = [number(name) for name in taken | written]
    last = max(numbers, default=_BEFORE_ALL)
    found: list[Pass] = []
    kept = set[str]()
    for at in range(_BEFORE_ALL, last + 1):
        gathered = {name for name in taken if number(name) == at}
        # Tables can wait for the last pass, which has most of what they are made of anyway.
        tables_now = written if at == last else set[str]()
        needed = _needed(makers, gathered | tables_now, kept)
        made = tuple(step for step in steps if step.output in needed)
        keeps = {step.output for step in made if step.is_kept and at < last}
        found.append(
            Pass(
                made,
                frozenset(gathered),
                frozenset(tables_now),
                tuple(step for step in steps if step.once and number(step.output) == at),
                frozenset(keeps),
                frozenset(kept & {name for step in made for name in step.inputs}),
            )
        )
        kept |= keeps
    return found


def _needed(
    makers: Mapping[str, TableStep], names: Iterable[str], ready: Collection[str]
) -> set[str]:
    """Return what has to be made of a bucket for what is named, beside what was kept of it."""
    found = set[str]()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in ready or name in found:
            continue
        if name in makers and not makers[name].once:
            found.add(name)
            waiting += makers[name].inputs
    return found


def resolve(
    steps: Sequence[TableStep], initial: Mapping[str, Any], *, at_once: int = 1
) -> dict[str, Any]:
    """Run all steps, each once and after those it depends on.

    Args:
        steps: In any order, some perhaps twice; where several could run, the first of them does.
        initial: What is there from the start, by name.
        at_once: How many run at the same time.

    Returns:
        What the steps made, by name.

    Raises:
        ValueError: Something a step needs is neither given nor made.
    """
    made: dict[str, Any] = {}
    waiting = list(dict.fromkeys(steps))
    running: dict[Future[Any], str] = {}
    pool = ThreadPoolExecutor(at_once)
    try:
        while waiting or running:
            there = {**initial, **made}
            ready = [step for step in waiting if there.keys() >= set(step.inputs)]
            for step in ready[: at_once - len(running)]:
                waiting.remove(step)
                future = pool.submit(step.function, *(there[name] for name in step.inputs))
                running[future] = step.output
            if not running:
                lacking = sorted({name for step in waiting for name in step.inputs} - there.keys())
                raise ValueError(f"nothing makes {', '.join(lacking)}")
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                made[running.pop(future)] = future.result()
    finally:
        # After an error or an interruption nobody waits for what still runs.
        pool.shutdown(wait=not running, cancel_futures=True)
    return made


def needed_for(steps: Sequence[TableStep], names: Iterable[str]) -> list[TableStep]:
    """Return the steps that make the tables named, and all that these are made of, in order."""
    makers = {step.output: step for step in steps}
    wanted = set(names)
    needed: set[str] = set()
    waiting = [step.output for step in steps if step.table in wanted or step.output in wanted]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [each for each in makers[name].inputs if each in makers]
    return [step for step in dict.fromkeys(steps) if step.output in needed]
