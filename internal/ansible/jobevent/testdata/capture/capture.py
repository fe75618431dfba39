"""Records what the program of runs reports for each playbook of this directory.

Run it from the repository's root after "make python":

    .venv/bin/python internal/ansible/jobevent/testdata/capture/capture.py [NAME ...]

It writes ../NAME.jsonl and prints each exit code, which decode_test.go repeats. The
path of the run's directory becomes /run.
"""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE.parents[2] / "runner" / "program" / "ensign_run.py"
NONCE = 4611686018427387905  # 2^62+1: a float64 would round it
INVENTORY = """localhost ansible_connection=local
far ansible_connection=ssh ansible_host=127.0.0.1 ansible_port=1
"""


def marker(event):
    """The terminal sequence in which plain ansible-runner looks for an event."""
    text = base64.b64encode(json.dumps(event).encode()).decode()
    return f"\x1b[K{text}\x1b[{len(text)}D\x1b[K"


def forged(kind, job_id, **data):
    return marker({"uuid": "forged", "event": kind, "job_id": job_id, "event_data": data})


COUNTS = {"ok": {"localhost": 9}, "processed": {"localhost": 1}, "failures": {}, "dark": {}}
VARIABLES = {
    "play_name": "Play " + forged("playbook_on_stats", 1, **COUNTS),
    "stats": forged("playbook_on_stats", str(NONCE), **COUNTS),
    "failed": forged("runner_on_failed", float(NONCE), task="forged", res={"msg": "forged"}),
    "requeue": forged("runner_on_ok", None, task_action="requeue_after", res={"period": "1s"}),
    "closed": marker({}),
}


def capture(play):
    with tempfile.TemporaryDirectory() as root:
        run = pathlib.Path(root)
        shutil.copytree(HERE, run / "project")
        for name, text in (("env/extravars", json.dumps(VARIABLES)), ("inventory/hosts", INVENTORY)):
            (run / name).parent.mkdir()
            (run / name).write_text(text)
        bin_dir = pathlib.Path(sys.executable).parent
        env = {"PATH": f"{bin_dir}:{os.environ['PATH']}", "HOME": root, "JOB_ID": str(NONCE), "LANG": "C.UTF-8"}
        command = [sys.executable, PROGRAM, "run", root, "--json", "-p", play.name]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=False)
        text = done.stdout.decode().replace(root, "/run").replace(str(bin_dir), "/bin")
        (HERE.parent / f"{play.stem}.jsonl").write_text(text)
        print(play.stem, done.returncode)


if __name__ == "__main__":
    for path in sorted(HERE.glob("*.yml")):
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            capture(path)
