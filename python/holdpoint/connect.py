"""A worker for holdpoint whose calls happen in another process: `connect.py SOCKET base|head`.

It hands its stdin and stdout to the process that listens on the socket and stays until that has answered everything,
so that holdpoint has a process to start, to pin and to end. It is run by path, without site-packages, because it is
started for every unit.
"""

from __future__ import annotations

import json
import os
import socket
import sys


def main() -> None:
    path, side = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        socket.send_fds(connection, [json.dumps({"side": side, "cpus": cpus}).encode()], [0, 1])
        # Only the other process may hold the pipes open: holdpoint must see when it ends.
        os.close(0)
        os.close(1)
        while connection.recv(64):
            pass


if __name__ == "__main__":
    main()
