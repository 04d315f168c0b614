"""Serving functions of this process to holdpoint: each connection gets a fork of it, so lambdas can be measured.

Where forking is not possible, because a GPU is in use here, connections are served by threads, one request at a time.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .worker import Worker, serve

MESSAGE_BYTES_MAX = 65536


class Server:
    """Listens on a socket and serves a worker for each side that connects, until closed."""

    def __init__(self, path: Path, workers: Mapping[str, Callable[[], Worker]], *, is_forking: bool) -> None:
        self.workers, self.is_forking = workers, is_forking
        self.turn = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.threads: list[threading.Thread] = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.attend, args=(connection,), daemon=True).start()

    def attend(self, connection: socket.socket) -> None:
        with connection:
            message, pipes, _, _ = socket.recv_fds(connection, MESSAGE_BYTES_MAX, 2)
            if len(pipes) != 2:
                return
            about = json.loads(message)
            make_worker = self.workers[about["side"]]
            if self.is_forking:
                self.serve_forked(connection, make_worker, about["cpus"], pipes)
            else:
                serve(TurnTaking(make_worker(), self.turn), os.fdopen(pipes[0]), os.fdopen(pipes[1], "w"))

    def serve_forked(
        self, connection: socket.socket, make_worker: Callable[[], Worker], cpus: list[int], pipes: list[int]
    ) -> None:
        """Lives as long as the shorter-lived of the child and the connector."""
        ended, alive = os.pipe()
        with warnings.catch_warnings():
            # The child touches nothing that another thread may have locked: it only serves.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            run_child(make_worker, cpus, pipes)
        for file in (alive, *pipes):
            os.close(file)
        with selectors.DefaultSelector() as selector:
            selector.register(ended, selectors.EVENT_READ)
            selector.register(connection, selectors.EVENT_READ)
            if not any(key.fd == ended for key, _ in selector.select()):
                os.kill(child, signal.SIGKILL)
        os.close(ended)
        os.waitpid(child, 0)

    def close(self) -> None:
        # A blocked accept does not notice that its socket is closed.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class TurnTaking:
    """A worker that shares this process with another one."""

    def __init__(self, worker: Worker, turn: threading.Lock) -> None:
        self.worker, self.turn = worker, turn

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        with self.turn:
            return self.worker.answer(request)


def run_child(make_worker: Callable[[], Worker], cpus: list[int], pipes: list[int]) -> None:
    """Serves in a forked process, and ends it without running what the parent would at its end."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        silence()
        if cpus:
            os.sched_setaffinity(0, cpus)
        if (torch := sys.modules.get("torch")) is not None:
            # The parent's pool of threads does not exist here, and using it would wait for ever.
            torch.set_num_threads(1)
        serve(make_worker(), os.fdopen(pipes[0]), os.fdopen(pipes[1], "w"))
        status = 0
    finally:
        os._exit(status)


def silence() -> None:
    """What the functions print dozens of times is of no use to anybody."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1, 2):
        os.dup2(nowhere, file)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for as long as the process lives)
