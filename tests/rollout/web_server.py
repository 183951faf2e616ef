"""A small web on the loopback, with the manners of the real one."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ARTICLE = """<!doctype html><html><head><title>The  Lantern
Fish</title><script>var tracking = 1;</script></head><body><nav><a href="/">Home</a><a href="/shop">Shop</a></nav>
<article><h1>The Lantern Fish</h1>
<p>The lantern fish lives at a depth of four hundred metres by day and rises to the surface at night to feed.</p>
<p>It was first described in 1810, and about two hundred and fifty species are known today in all the oceans.</p>
</article><footer>Cookies, terms and conditions</footer></body></html>"""
FRENCH = """<html><head><meta charset='iso-8859-1'><title>Été</title></head>
<body><p>Le café coûte dix francs, à Orléans.</p></body></html>"""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        getattr(self, "get_" + self.path.partition("?")[0].strip("/").replace("-", "_"), self.get_missing)()

    def log_message(self, format: str, *args: object) -> None:
        return

    def answer(self, body: bytes, kind: str = "text/html; charset=utf-8", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def redirect(self, where: str) -> None:
        self.answer(b"", status=302, Location=where)

    def get_article(self) -> None:
        self.answer(ARTICLE.encode())

    def get_host(self) -> None:
        self.answer(self.headers["Host"].encode(), "text/plain")

    def get_moved(self) -> None:
        self.redirect("/article")

    def get_loop(self) -> None:
        self.redirect("/loop")

    def get_to_metadata(self) -> None:
        self.redirect("http://169.254.169.254/latest/meta-data")

    def get_to_file(self) -> None:
        self.redirect("file:///etc/passwd")

    def get_missing(self) -> None:
        self.answer(b"<h1>Not here</h1>", status=404)

    def get_french(self) -> None:
        self.answer(FRENCH.encode("latin-1"), "text/html")

    def get_wrong_charset(self) -> None:
        self.answer("naïve café".encode(), "text/plain; charset=no-such-charset")

    def get_binary(self) -> None:
        self.answer(bytes(range(256)) * 10, "application/octet-stream")

    def get_bomb(self) -> None:
        self.answer(gzip.compress(bytes(64 << 20)), "text/plain", Content_Encoding="gzip")

    def get_layers(self) -> None:
        self.answer(gzip.compress(gzip.compress(b"x")), "text/plain", Content_Encoding="gzip, gzip")

    def get_damaged_gzip(self) -> None:
        self.answer(b"this is no gzip", "text/plain", Content_Encoding="gzip")

    def get_endless(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for _ in range(4096):  # 256 MiB, should nobody hang up
            try:
                self.wfile.write(b"endless " * 8192)
            except OSError:
                return

    def get_slow(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        for _ in range(100):
            try:
                self.wfile.write(b"x")
                self.wfile.flush()
            except OSError:
                return
            time.sleep(0.1)

    def get_search(self) -> None:
        if self.headers.get("X-Subscription-Token") != "the key":
            self.answer(b"{}", "application/json", 401)
        elif "nothing" in self.path:
            self.answer(b'{"web": {"results": []}}', "application/json")
        elif "broken" in self.path:
            self.answer(b'{"web": []}', "application/json")
        elif "moved" in self.path:
            self.redirect("/host")
        else:
            hit = '{"title": "Fish", "url": "http://example.org/fish", "description": "About fish."}'
            self.answer(f'{{"web": {{"results": [{hit}, {hit}, {hit}]}}}}'.encode(), "application/json")


@contextmanager
def web_server() -> Iterator[str]:
    """Its address, without a slash at the end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
