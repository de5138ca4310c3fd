"""Processes of ``ajuste`` that begin with everything imported: a test that only looks at what one command says need not
wait for the interpreter.

``python warm.py`` reads requests, a JSON line each, and carries out every one in a process forked for it. Its answers
are exit codes. A module of the tests uses it through ``run``.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

_one_at_a_time = threading.Lock()


def run(words: Sequence[str], directory: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """``ajuste`` with ``words``, run to its end."""
    with TemporaryFile("w+") as output, TemporaryFile("w+") as complained:
        request = {
            "words": list(words),
            "directory": str(directory),
            "environment": dict(environment),
            "output": f"/proc/{os.getpid()}/fd/{output.fileno()}",
            "errors": f"/proc/{os.getpid()}/fd/{complained.fileno()}",
        }
        with _one_at_a_time:
            server = _server()
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            try:
                code = int(server.stdout.readline())
            except BaseException:  # the time of this test is over: the next must not wait for its command
                os.killpg(server.pid, signal.SIGTERM)
                _server.cache_clear()
                raise
        output.seek(0)
        complained.seek(0)
        return subprocess.CompletedProcess(words, code, output.read(), complained.read())


@cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-u", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    atexit.register(server.terminate)
    return server


def _serve() -> None:
    import ajuste.store.store  # noqa: F401 - it loads SQLAlchemy
    from ajuste.catalogue.loader import catalogue
    from ajuste.cli.main import whole_application

    whole_application()
    len(catalogue().tunables), len(catalogue().workloads)
    gc.freeze()
    answers = os.dup(1)
    os.set_inheritable(answers, False)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os.close(answers)
            _become(json.loads(line))  # ends this process
        _, status = os.waitpid(pid, 0)
        os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(request: dict[str, object]) -> None:
    """Do what was asked for, in the process that was made for it, and end that."""
    from ajuste.cli.main import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, str(request["output"]), os.O_WRONLY),
        (2, str(request["errors"]), os.O_WRONLY),
    ):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(str(request["directory"]))
    environment = request["environment"]
    assert isinstance(environment, dict)
    os.environ.clear()
    os.environ.update(environment)
    words = request["words"]
    assert isinstance(words, list)
    sys.argv = ["ajuste", *words]
    main()


if __name__ == "__main__":
    _serve()
