"""Which asynchronous jobs a run waits for."""

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ensign_jobs import AsyncJobs, is_running, noting

RUNNING = {"started": 1, "finished": 0, "ansible_job_id": "j1"}


def started(file: Path, limit: int = 60, **data: Any) -> Any:
    """Return the result of a task, as ansible-core 2.19 and 2.20 have it."""
    result = {"ansible_job_id": "j1", "results_file": str(file), "started": True, "finished": False, **data}
    return SimpleNamespace(_task=SimpleNamespace(async_val=limit), _return_data=result)


def test_a_run_waits_until_the_job_has_ended(tmp_path: Path) -> None:
    file, reported = tmp_path / "j1", list[Any]()
    file.write_text(json.dumps(RUNNING))
    jobs = AsyncJobs()
    noting(jobs, "v2_runner_on_ok", (started(file),))
    threading.Timer(0.3, lambda: file.write_text(json.dumps({"changed": True, "rc": 0}))).start()
    jobs.wait(reported.append)
    assert len(reported) == 1
    assert not is_running(str(file))


def test_what_a_run_does_not_wait_for(tmp_path: Path) -> None:
    ended, other, alone = tmp_path / "ended", tmp_path / "on-another-machine", tmp_path / "not-asynchronous"
    ended.write_text(json.dumps({"changed": True}))
    alone.write_text(json.dumps(RUNNING))
    jobs = AsyncJobs()
    noting(jobs, "v2_runner_on_ok", (started(ended),))
    noting(jobs, "v2_runner_item_on_ok", (started(other),))
    noting(jobs, "v2_runner_on_ok", (started(alone, limit=0),))  # Such as async_status.
    noting(jobs, "v2_runner_on_failed", (started(alone),))
    noting(jobs, "v2_runner_on_ok", (started(alone, finished=True),))
    noting(jobs, "v2_runner_on_ok", (object(),))
    noting(jobs, "v2_playbook_on_stats", ())
    reported: list[Any] = []
    jobs.wait(reported.append)
    assert reported == []


def test_no_job_is_waited_for_longer_than_it_may_take(tmp_path: Path) -> None:
    file = tmp_path / "j1"
    file.write_text(json.dumps(RUNNING))  # Its processes were killed.
    jobs = AsyncJobs()
    noting(jobs, "v2_runner_on_ok", (started(file),))
    jobs._jobs = {name: (task, time.monotonic() + 0.2) for name, (task, _) in jobs._jobs.items()}
    jobs.wait(lambda _: None)
    assert is_running(str(file))
