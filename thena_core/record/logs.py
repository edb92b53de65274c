"""The standard `logging` tree `thena`: runs, their steps, and warnings. Silent unless the program configures logging.

| logger | carries |
|---|---|
| `thena.run` | start and end of each run (INFO), a run that failed (WARNING) |
| `thena.<kind>` of the step | start and end of each step (DEBUG), one that failed (INFO) |
| `thena` | what Thena warns of besides (WARNING); the same goes through `warnings` |

Records carry names, ids, times and error texts, masked, and nothing else of what a run said; `run_id`, `node_id`,
`outcome` and `duration_ms` are attributes of the record, for formatters that write fields.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

from thena_core._render import said_by

if TYPE_CHECKING:
    from thena_core.record.event import Event
    from thena_core.record.redact import Redactor

ROOT = "thena"
STEPS = ("workflow", "loop", "parallel", "agent", "chat", "tool")
_MAX_ERROR = 500

_ROOT_LOGGER = logging.getLogger(ROOT)
_RUNS = logging.getLogger(f"{ROOT}.run")
_STEPS = {kind: logging.getLogger(f"{ROOT}.{kind}") for kind in STEPS}
_WORKFLOW, _LOOP, _PARALLEL, _AGENT, _CHAT, _TOOL = (_STEPS[kind] for kind in STEPS)
# What the library rules of `logging` ask for: without a handler of the program's own, nothing is printed.
_ROOT_LOGGER.addHandler(logging.NullHandler())


def steps_are_wanted() -> bool:
    """Whether the program's logging takes anything about a run or its steps; asked for each run."""
    # by the levels first, which is quicker; `isEnabledFor` knows of `logging.disable` besides
    if (_ROOT_LOGGER.level or logging.root.level) <= logging.INFO and _ROOT_LOGGER.isEnabledFor(logging.INFO):
        return True
    # what has no level of its own goes by the one above
    own = _RUNS.level or _TOOL.level or _CHAT.level or _AGENT.level or _LOOP.level or _PARALLEL.level or _WORKFLOW.level
    return bool(own) and any(logger.isEnabledFor(logging.INFO) for logger in (_RUNS, *_STEPS.values()))


def log_step(event: Event) -> None:
    """Log the start or end of a step; it is a listener of the recorder."""
    level = logging.INFO if event.status == "error" else logging.DEBUG
    logger = _STEPS[event.kind]
    if event.phase == "progress" or not logger.isEnabledFor(level):
        return
    extra = {
        "run_id": event.run_id,
        "node_id": event.id,
        "outcome": event.outcome,
        "duration_ms": event.duration_ms,
    }
    from thena_core.record.oneline import duration, one_line  # noqa: PLC0415 - only who logs needs it

    step = f"{event.kind} {one_line(event.name, 120, None)}"
    took = f" after {duration(event.duration_ms)}" if event.duration_ms is not None else ""
    if event.phase == "start":
        _log(logger, level, f"{step} started ({event.id})", extra)
    elif event.status == "error":
        reason = ": ".join(part for part in (event.outcome, event.brief(_MAX_ERROR)) if part)
        _log(logger, level, f"{step} failed{took}: {reason} ({event.id})", extra)
    else:
        _log(logger, level, f"{step} ended{took} ({event.id})", extra)


def run_started(run_id: str) -> bool:
    """Log that a run starts; return whether the program's logging takes that, and so its end."""
    wanted = _RUNS.isEnabledFor(logging.INFO)
    if wanted:
        _log(_RUNS, logging.INFO, f"run {run_id} started", {"run_id": run_id})
    return wanted


def run_ended(run_id: str, how: str, started: float) -> None:
    """Log that a run ended.

    Args:
        run_id: Its id.
        how: Why it ended, in a word.
        started: When it started, in seconds of `time.perf_counter()`.
    """
    seconds = time.perf_counter() - started
    extra = {"run_id": run_id, "outcome": how, "duration_ms": seconds * 1000}
    _log(_RUNS, logging.INFO, f"run {run_id} ended after {seconds:.3f} s: {how}", extra)


def run_failed(run_id: str, error: BaseException, started: float, redact: Redactor, *, is_asked_for: bool) -> None:
    """Log that an exception left a run: its name and what it says, never what it came from.

    Args:
        run_id: Its id.
        error: The exception.
        started: When the run started, in seconds of `time.perf_counter()`.
        redact: Masks what the exception says.
        is_asked_for: Whether somebody stopped the run, which is no failure.
    """
    level = logging.INFO if is_asked_for else logging.WARNING
    if _RUNS.isEnabledFor(level):
        from thena_core.record.oneline import one_line  # noqa: PLC0415 - only who logs needs it

        seconds = time.perf_counter() - started
        word = "was stopped" if is_asked_for else "failed"
        extra = {"run_id": run_id, "outcome": type(error).__name__, "duration_ms": seconds * 1000}
        text = one_line(said_by(error), _MAX_ERROR, redact)
        _log(_RUNS, level, f"run {run_id} {word} after {seconds:.3f} s: {text}", extra)


def warn(
    problem: str, category: type[Warning] = RuntimeWarning, *, stacklevel: int = 1, may_raise: bool = False
) -> None:
    """Warn of what went wrong beside the run's own work: through `warnings`, and in the log.

    Where the program makes warnings errors (`python -W error`), it goes to stderr instead of ending a run.

    Args:
        problem: What happened, where, and what to do; secrets in it are masked.
        category: Of the warning.
        stacklevel: Whose line the warning names; 1 is the caller.
        may_raise: Whether such a program gets its error: where no run can be harmed by it.

    Raises:
        Warning: See `may_raise`.
    """
    from thena_core.record.redact import mask  # noqa: PLC0415 - its patterns cost time to compile

    text = mask(problem)
    _log(_ROOT_LOGGER, logging.WARNING, text, {})
    try:
        warnings.warn(text, category, stacklevel=stacklevel + 1)
    except Warning:
        if may_raise:
            raise
        _say(text)


def _log(logger: logging.Logger, level: int, text: str, extra: dict[str, Any]) -> None:
    try:
        logger.log(level, "%s", text, extra=extra, stacklevel=3)
    except Exception as error:  # noqa: BLE001 - a filter of the program's may raise, and must not end a run
        _say(f"[thena] the logger {logger.name} failed: {said_by(error)}")


def _say(text: str) -> None:
    # a closed stderr, or none at all (pythonw): then there is nobody left to tell
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(text + "\n")
