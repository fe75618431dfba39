"""Programs that are forked from a process which has imported what they need.

A server (loop.py) has one kind of program: runs, which are ansible-runner with the
playbook in the same process, or modules (kinds.py). A stand-in for that program connects to it, and gets a fork of
the server that becomes the program with everything of the stand-in's: arguments,
environment, working directory, limits, descriptors, terminal (process.py).

No fork ever returns to the server, so nothing of a run gets into another one. What
a new interpreter would do differently is a reason to refuse (Refused): the stand-in
then starts the real program. It can, because nothing of the program has run before
the stand-in says "go".
"""
