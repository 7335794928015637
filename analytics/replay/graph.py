"""Tables made of tables: every step runs as soon as what it is made of is there, several at once.

Planning a query keeps one core busy and running a small one hardly any, so tables that do not need
each other are made side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TableStep:
    """One thing to make.

    Attributes:
        output: Its name.
        function: What makes it; takes what `inputs` names, in that order.
        inputs: Names of what is given, or of what other steps make.
    """

    output: str
    function: Callable[..., Any]
    inputs: tuple[str, ...]


def resolve(
    steps: Sequence[TableStep], given: Mapping[str, Any], *, at_once: int = 1
) -> dict[str, Any]:
    """Run all steps, each once and after those it depends on.

    Args:
        steps: In any order, some perhaps twice; where several could run, the first of them does.
        given: What is there from the start, by name.
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
            there = {**given, **made}
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
    """Return the steps that make what is named, and all that these are made of, in their order."""
    makers = {step.output: step for step in steps}
    needed: set[str] = set()
    waiting = [name for name in names if name in makers]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [each for each in makers[name].inputs if each in makers]
    return [step for step in dict.fromkeys(steps) if step.output in needed]
