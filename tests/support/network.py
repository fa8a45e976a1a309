"""A network between a client and a server: it may break connections, or carry nothing for a while.

A connection is broken as a crashed machine or a firewall does it, by RST: what was on its way is
lost, and neither side knows how much of it the other has seen.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_BROKEN = struct.pack("ii", 1, 0)  # SO_LINGER with 0 seconds: closing sends RST


class Network:
    """Carries bytes between its own port and a server, until it is told otherwise.

    Parameters
    ----------
    connect : callable
        Makes a connection to the server.
    break_every : int
        Each so many-th reply is cut after its first half, and its connection is reset; 0 for none.

    Attributes
    ----------
    port : int
        Where clients find it, on 127.0.0.1.
    resets : int
        Connections that were broken.
    """

    def __init__(self, connect: Callable[[], socket.socket], break_every: int = 0) -> None:
        self._connect, self._break_every = connect, break_every
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.resets = self._replies = 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._carries = threading.Event()
        self._carries.set()
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def partition(self) -> Iterator[None]:
        """Nothing arrives on either side; at the end every connection is broken."""
        self._carries.clear()
        try:
            yield
        finally:
            with self._lock:
                broken = list(self._open)
            for each in broken:
                self._break(each)
            self._carries.set()

    def stop(self) -> None:
        self._listener.close()
        with self._lock:
            remaining = list(self._open)
        for each in remaining:
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                try:
                    server = self._connect()
                except OSError:  # nobody is there: refused, as without us
                    self._break(client)
                    continue
                with self._lock:
                    self._open |= {client, server}
                for source, target in ((client, server), (server, client)):
                    arguments = (source, target, source is server)
                    threading.Thread(target=self._carry, args=arguments, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, replies: bool) -> None:
        with contextlib.suppress(OSError):  # the other direction has closed both
            while data := source.recv(65536):
                if not self._carries.is_set():
                    self._carries.wait()
                    break  # what was on its way is lost
                if replies and self._is_broken():
                    target.sendall(data[: len(data) // 2])
                    self._break(target)
                    break
                target.sendall(data)
        for each in (source, target):
            with self._lock:
                self._open.discard(each)
            with contextlib.suppress(OSError):  # it was broken
                # the thread of the other direction still reads, and a close alone waits for it
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _is_broken(self) -> bool:
        with self._lock:
            self._replies += 1
            return bool(self._break_every) and self._replies % self._break_every == 0

    def _break(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # it was closed meanwhile
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _BROKEN)
            # wakes the thread that reads from it, which a close alone does not
            connection.shutdown(socket.SHUT_RD)
            connection.close()
            self.resets += 1
