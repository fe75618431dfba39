"""Asynchronous jobs of a run's own machine that no task has waited for.

The processes of a run end with the run. So a task with `poll: 0` whose job nothing waits for would be killed in the
middle of its work, while the run reports a success.
"""

import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

_POLL = 0.1
# async_wrapper looks at a job every 5 seconds, and writes its result a second after it has killed it.
_GRACE = 10


class AsyncJobs:
    """The jobs that tasks have started."""

    def __init__(self) -> None:
        self._jobs: dict[str, tuple[Any, float]] = {}  # By the file with the job's state: task, end of its time.

    def note(self, result: Any) -> None:
        """Note the job of a task's result, if it started one."""
        task = result.task if hasattr(result, "task") else result._task
        limit = task.async_val
        data = result.utr.as_result_dict() if hasattr(result, "utr") else result._return_data
        file = data.get("results_file")
        if limit and isinstance(file, str) and data.get("ansible_job_id") and not data.get("finished"):
            self._jobs.setdefault(file, (task, time.monotonic() + limit + _GRACE))

    def wait(self, report: Callable[[Any], None]) -> None:
        """Wait for the jobs that have not ended, each as long as it may take. Report the task of each before."""
        for file, (task, end) in self._jobs.items():
            if is_running(file):
                report(task)
            while is_running(file) and time.monotonic() < end:
                time.sleep(_POLL)
        self._jobs.clear()


def is_running(file: str) -> bool:
    """Report whether a job runs, by its file: there is none for a job of another machine, or one that was cleared."""
    try:
        with open(file, encoding="utf-8") as text:
            state = json.load(text)
    except OSError:
        return False
    except ValueError:
        return True  # It is not written yet.
    return isinstance(state, dict) and "started" in state and not state.get("finished")


def noting(jobs: AsyncJobs, method: str, arguments: tuple[Any, ...]) -> None:
    """Note the job of a result that Ansible passes to its callbacks."""
    if method in ("v2_runner_on_ok", "v2_runner_item_on_ok") and arguments:
        with contextlib.suppress(AttributeError, TypeError):
            jobs.note(arguments[0])
