"""Runs that are forks of a process which has imported what they need.

The manager asks a server (loop.py) for a fork, which becomes the run with the arguments,
environment, directory and descriptors that the manager names (wire.py, process.py, run.py).
The run has its modules in forks of Ansible's workers (modules.py, module.py, apart.py).

No fork ever returns to the server, so nothing of a run gets into another one. What
a new interpreter would do differently is a reason to refuse (Refused): the manager
then starts one. It can, because nothing of the run has begun before the manager says "go".
"""
