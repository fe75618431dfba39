"""What the manager says to a server, and to its forks; internal/ansible/warm/fork.go has the protocol."""

import os
import socket
import struct
from dataclasses import dataclass

FORK, ANSWER, RETIRE, GO = b"f", b"p", b"r", b"g"
OUTPUTS = 2


class Refused(Exception):  # noqa: N818
    """This run has to be started in a new interpreter. The text is one of a few reasons."""


class Outdated(Refused):
    """The server has to be replaced: another one may be able to do what this one is not."""


@dataclass(frozen=True)
class Request:
    """A run to become."""

    directory: bytes
    arguments: list[bytes]  # of Python, without its own name
    environment: dict[bytes, bytes]


def receive(connection: socket.socket) -> Request:
    (size,) = struct.unpack("<I", _exactly(connection, 4))
    directory, count, *rest = _exactly(connection, size).split(b"\0")[:-1]
    variables = (entry.partition(b"=") for entry in rest[int(count) :])
    return Request(directory, rest[: int(count)], {name: value for name, _, value in variables if name})


def pack(request: Request) -> bytes:
    """Return what receive reads."""
    fields = [request.directory, b"%d" % len(request.arguments), *request.arguments]
    fields += [name + b"=" + value for name, value in request.environment.items()]
    text = b"".join(field + b"\0" for field in fields)
    return struct.pack("<I", len(text)) + text


def answer(connection: socket.socket, line: str) -> None:
    connection.sendall(ascii(line)[1:-1].encode() + b"\n")  # A variable may have any name.


def await_go(connection: socket.socket) -> list[int]:
    """Tell the manager that the run can begin, and return its descriptors; raise OSError where it must not."""
    answer(connection, f"ready {os.getpid()}")
    said, descriptors, _, _ = socket.recv_fds(connection, 1, OUTPUTS)
    if said != GO or len(descriptors) != OUTPUTS:
        raise ConnectionResetError
    return descriptors


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = connection.recv(size, socket.MSG_WAITALL)
    if len(data) != size:
        raise ConnectionResetError
    return data
