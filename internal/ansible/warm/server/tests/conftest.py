"""Interpreters of their own, for what can't be undone."""

import json
import subprocess
import sys
from pathlib import Path

SERVER = Path(__file__).parents[1]
TIMEOUT = 60
_FORKS = """
import json, os, sys, traceback
before, cases = json.loads(sys.stdin.read())
exec(before)
results = {}
for name, case in cases.items():
    taken, told = os.pipe()
    if os.fork() == 0:
        try:
            exec(case, {**globals()})
            os.write(told, b"passed")
        except BaseException:
            os.write(told, traceback.format_exc().encode())
        os._exit(0)
    os.close(told)
    with open(taken) as file:
        results[name] = file.read()
    os.wait()
print(json.dumps(results))
"""


def execute(script: str, *arguments: str, stdin: str = "", **environment: str) -> str:
    """Return what a script prints that can import what a server can."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script, *arguments],
        input=stdin,
        env={"PYTHONPATH": str(SERVER)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def in_forks(before: str, cases: dict[str, str], *arguments: str) -> dict[str, str]:
    """Run each case in a fork of an interpreter that has run what comes before, and return "passed", or why not."""
    found: dict[str, str] = json.loads(execute(_FORKS, *arguments, stdin=json.dumps([before, cases])))
    return found
