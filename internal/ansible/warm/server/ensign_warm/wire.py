"""What a stand-in and its fork say to each other on their connection.

The stand-in sends a length of four bytes, little-endian, and then as many bytes:
fields that each end with NUL. The fork answers with a line, "ready PID" or "cold
REASON". After "ready" the stand-in sends one byte, GO, with its descriptors 0 to 2:
what is not certain to be read must not hold them, because somebody waits for their
end. The server sends the last line: "exit CODE" or "signal NUMBER".
"""

import os
import socket
import struct
from dataclasses import dataclass

GO = b"g"
PING = b"\0\0\0\0"  # from the manager, which asks whether the server answers
MAX_REQUEST = 16 << 20
STDIO = 3
_LENGTH = 4
_VERSION = b"2"
_BLOCKING = b"1"


class Refused(Exception):  # noqa: N818
    """This program has to be started in a new interpreter. The text is one of a few reasons."""


class Outdated(Refused):
    """The whole server has to be started anew, because its imports are not what they would be now."""


@dataclass(frozen=True)
class Request:
    """A program to become."""

    arguments: list[bytes]  # without the program's own name
    environment: dict[bytes, bytes]
    directory: bytes
    umask: int
    ignored: list[int]  # signals
    limits: list[tuple[int, int]]  # soft and hard, by their number
    blocking: bool  # as all three descriptors are


def receive(connection: socket.socket) -> Request:
    """Return the request of a stand-in of this user."""
    check_peer(connection)
    header = _exactly(connection, _LENGTH)
    if header == PING:
        bytes(MAX_REQUEST)  # Without memory the manager hears of that, and replaces the server.
        raise Refused("ping")
    (size,) = struct.unpack("<I", header)
    if size > MAX_REQUEST:
        raise Refused("request")
    return parse(_exactly(connection, size))


def check_peer(connection: socket.socket) -> None:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    if user != os.geteuid():
        raise Refused("user")


def parse(payload: bytes) -> Request:
    """Return the request whose fields these are."""
    try:
        version, umask, directory, ignored, limits, blocking, count, *rest = payload.split(b"\0")[:-1]
        if version != _VERSION:
            raise Refused("request")
        variables = (entry.partition(b"=") for entry in rest[int(count) :])
        return Request(
            arguments=rest[: int(count)],
            environment={name: value for name, separator, value in variables if separator and name},
            directory=directory,
            umask=int(umask),
            ignored=[int(number) for number in ignored.split()],
            limits=[_pair(limit) for limit in limits.split()],
            blocking=blocking == _BLOCKING,
        )
    except ValueError as error:
        raise Refused("request") from error


def _pair(limit: bytes) -> tuple[int, int]:
    soft, hard = limit.split(b":")
    return _limit(int(soft)), _limit(int(hard))


def _limit(value: int) -> int:
    infinity = (1 << 64) - 1
    return -1 if value == infinity else value


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(size)
        if not part:
            raise Refused("request")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
