"""A line to PostgreSQL that can freeze: whoever is connected hears nothing more, and is not told that."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from proxy.twin.embedded import PORT, Cluster


@dataclass
class Line:
    """A port that leads to a cluster's socket."""

    target: Path
    listening: socket.socket
    flows: threading.Event = field(default_factory=threading.Event)
    losses: int = 0
    seconds_a_packet: float = 0

    @property
    def port(self) -> int:
        return int(self.listening.getsockname()[1])

    def freeze(self) -> None:
        self.flows.clear()

    def thaw(self) -> None:
        self.flows.set()

    def lose(self) -> None:
        """Pass nothing more on the connections that there are; new ones work."""
        self.losses += 1

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(str(self.target))
                except OSError:  # the cluster is away: so is whoever asks for it
                    client.close()
                    continue
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        losses = self.losses
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self.flows.wait()
                time.sleep(self.seconds_a_packet)
                if losses == self.losses:
                    target.sendall(data)
        with suppress(OSError):  # a server that crashed has ended the connection too
            target.shutdown(socket.SHUT_WR)


@contextmanager
def line_to(cluster: Cluster) -> Iterator[Line]:
    """A line that flows."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        line = Line(cluster.directory / f".s.PGSQL.{PORT}", listening)
        line.thaw()
        threading.Thread(target=line.accept, daemon=True).start()
        yield line
        line.thaw()
