"""What forks leave for their server at their end: in a file of the server's own directory.

Whoever may write there is this user, as are all forks. So a note is no more than a hint: what
a server makes of it is a function of sources and files, and it takes no settings from one.
"""

import contextlib
import os


class Notes:
    """A file that forks append to and the server empties."""

    def __init__(self, path: str) -> None:
        self._path = path
        with contextlib.suppress(OSError):
            os.unlink(path)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._inode = os.fstat(self._file).st_ino

    def take(self) -> bytes:
        """Return in the server what forks have left since the last time."""
        size = os.fstat(self._file).st_size
        taken = os.pread(self._file, size, 0) if size else b""
        if size:
            os.ftruncate(self._file, 0)
        return taken

    def leave_server(self) -> None:
        """Keep nothing open in a fork."""
        os.close(self._file)

    def leave(self, note: bytes) -> None:
        """Leave a note, in a fork, if the server's file is still there."""
        with contextlib.suppress(OSError):
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
            if os.fstat(file).st_ino == self._inode:
                os.write(file, note)
            os.close(file)
