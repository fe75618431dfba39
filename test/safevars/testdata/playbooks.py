"""Runs ansible-playbook often: each time in a fork of a process that has it imported.

Each line of standard input is {"argv": [...], "output": path}; each line of
standard output is the exit code of that run, in the same order.
"""

import json
import os
import sys
import traceback

from ansible.cli.playbook import PlaybookCLI


def run(argv: list[str], output: str) -> None:
    """Become ansible-playbook."""
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    code = 250
    try:
        PlaybookCLI.cli_executor(["ansible-playbook", *argv])
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            run(request["argv"], request["output"])
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


main()
