"""A process that passes TCP connections on: a replica of its own as far as its clients can see, cheap to kill.

python -m eval.bench.tcp_proxy LISTEN_PORT UPSTREAM_PORT
"""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass

STARTED_WITHIN_S = 30.0


@dataclass
class ProxyProcess:
    """The proxy on loopback ``port`` to ``upstream``; not started yet."""

    port: int
    upstream: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when it takes connections. Raises ``RuntimeError`` when it does not."""
        if _takes_connections(self.port):
            raise RuntimeError(f"the proxy cannot start: port {self.port} is taken")
        command = [sys.executable, "-m", "eval.bench.tcp_proxy", str(self.port), str(self.upstream)]
        self.process = subprocess.Popen(command)
        deadline = time.monotonic() + STARTED_WITHIN_S
        while not _takes_connections(self.port):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"the proxy on port {self.port} did not start")
            time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL: every connection through it breaks; idempotent."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _takes_connections(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


async def _serve(port: int, upstream: int) -> None:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", upstream)
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer), return_exceptions=True)

    server = await asyncio.start_server(connection, "127.0.0.1", port)
    await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one side closes; then the other is closed too."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
