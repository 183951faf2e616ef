"""A real HTTP server on a loopback port that answers from a function and writes down what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """``body`` is what the JSON says, ``None`` without one; ``headers`` by names in Title-Case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Reply:
    """``status`` 0 hangs up without a word. A text is sent as HTML, anything else as JSON."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


HANG_UP = Reply(status=0)


@dataclass
class LoopbackServer:
    """``asked`` grows with every request."""

    url: str
    asked: list[Asked] = field(default_factory=list)

    def bodies(self, path: str) -> list[Any]:
        return [asked.body for asked in self.asked if asked.path == path]


@contextmanager
def loopback_server(reply: Callable[[Asked], Reply]) -> Iterator[LoopbackServer]:
    """Serves until the block ends. ``reply`` runs on a thread for each connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(
                self.command,
                self.path,
                {name.title(): value for name, value in self.headers.items()},
                json.loads(text) if text else None,
            )
            server.asked.append(asked)
            send(self, reply(asked))

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a client that has gone

    http = Quiet(("127.0.0.1", 0), Handler)
    server = LoopbackServer(f"http://127.0.0.1:{http.server_address[1]}")
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    time.sleep(reply.delay_s)
    if reply.status == 0:
        handler.close_connection = True
        handler.connection.close()
        return
    html = isinstance(reply.body, str)
    payload = (reply.body if html else json.dumps(reply.body)).encode()
    handler.send_response(reply.status)
    handler.send_header("Content-Type", "text/html" if html else "application/json")
    handler.send_header("Content-Length", str(len(payload)))
    for name, value in reply.headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(payload)
