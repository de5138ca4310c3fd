"""What files hold, by their SHA-256; and files that are kept, which may have become anything since."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path


def sha256_of(file: Path) -> str:
    """SHA-256 of the content, hexadecimal. Raises OSError, also for what is no regular file: it never waits for a
    writer.
    """
    with open_kept(file) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def open_kept(file: Path) -> BufferedReader:
    """A regular file, to read. Raises OSError for anything else, such as a FIFO, which would make its reader wait."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(file))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_kept(file: Path) -> bytes:
    """The content of a regular file. Raises OSError."""
    with open_kept(file) as opened:
        return opened.read()


def sealed(text: str) -> str:
    """``text`` of one line, below its own checksum: what ``unsealed`` takes."""
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n"


def unsealed(content: bytes) -> bytes:
    """What was sealed. Raises ValueError if it is not exactly that any more."""
    digest, _, rest = content.partition(b"\n")
    text = rest.removesuffix(b"\n")
    if digest.decode("ascii", "replace") != hashlib.sha256(text).hexdigest() or rest == text:
        raise ValueError("its checksum differs")
    return text
