"""Pages of a small real web: what is read, what is refused, and what is given up on."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from rollout.tools.page import PageTool
from rollout.tools.search import SearchTool, WebSearch
from rollout.tools.tool import ToolResult
from rollout.tools.web import CheckedTransport, WebError, WebLimits, fetch, is_public
from tests.rollout.web_server import web_server

HERE = WebLimits(seconds=30.0, max_bytes=1 << 20, allow_private=True)


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with web_server() as address:
        yield address


def open_page(url: str, limits: WebLimits = HERE, **arguments: object) -> ToolResult:
    return asyncio.run(PageTool(limits).call({"url": url, **arguments}))


def test_the_main_text_of_a_page_is_read(web: str) -> None:
    result = open_page(f"{web}/article")
    assert result.error == ""
    assert result.text.startswith(f"{web}/article\nThe Lantern Fish\n")
    assert "first described in 1810" in result.text
    assert "tracking" not in result.text
    assert "Cookies" not in result.text


def test_a_redirect_is_followed_and_shown(web: str) -> None:
    assert open_page(f"{web}/moved").text.startswith(f"{web}/article\n")


def test_a_long_page_is_read_in_parts(web: str) -> None:
    whole = open_page(f"{web}/article").text
    part = asyncio.run(PageTool(HERE, max_characters=40).call({"url": f"{web}/article", "start": 20}))
    body = whole.partition("\n")[2]
    assert part.text.splitlines()[1:] == [
        *body[20:60].splitlines(),
        f"[{len(body) - 60} more characters; read on with start=60]",
    ]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("loop", "redirects more than 5 times"),
        ("missing", "answers 404 Not Found"),
        ("to-file", "only http and https"),
        ("layers", "is encoded as 'gzip, gzip'"),
        ("damaged-gzip", "could not be read: DecodingError"),
        ("binary", "not a text"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_says_why(web: str, path: str, why: str) -> None:
    result = open_page(f"{web}/{path}")
    assert result.text == ""
    assert why in result.error


@pytest.mark.parametrize(
    "url", ["ftp://example.org/x", "file:///etc/passwd", "no address", "http://", "http://[::1", ""]
)
def test_what_is_no_web_address_is_an_error(url: str) -> None:
    assert open_page(url).error.startswith("open_page: ")


def test_charsets_are_found_in_the_page_or_guessed(web: str) -> None:
    assert "Le café coûte dix francs, à Orléans" in open_page(f"{web}/french").text
    assert open_page(f"{web}/wrong-charset").text.endswith("naïve café")


def test_a_body_without_end_and_a_bomb_are_cut(web: str) -> None:
    for path in ("endless", "bomb"):
        page = asyncio.run(fetch(f"{web}/{path}", HERE))
        assert page.cut
        assert len(page.body) == HERE.max_bytes


def test_a_body_that_trickles_is_given_up(web: str) -> None:
    with pytest.raises(WebError, match=r"took longer than 0\.5 s"):
        asyncio.run(fetch(f"{web}/slow", WebLimits(seconds=0.5, allow_private=True)))


def test_loopback_is_refused_unless_allowed(web: str) -> None:
    assert "leads to 127.0.0.1, which is not a public address" in open_page(f"{web}/article", WebLimits()).error
    port = web.rpartition(":")[2]
    assert "not a public address" in open_page(f"http://localhost:{port}/article", WebLimits()).error


def test_a_redirect_to_a_private_address_is_refused(web: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server itself passes as public here; where it sends us does not."""
    monkeypatch.setattr("rollout.tools.web.is_public", lambda address: address == "127.0.0.1" or is_public(address))
    assert "leads to 169.254.169.254" in open_page(f"{web}/to-metadata", WebLimits()).error


def test_the_connection_goes_to_the_address_that_was_checked(web: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to a public address first and to a private one next is looked up once only."""
    port = int(web.rpartition(":")[2])
    asked = []

    async def resolve(self: CheckedTransport, host: str, port: int) -> str:
        asked.append(host)
        return "127.0.0.1"

    monkeypatch.setattr(CheckedTransport, "_checked_address", resolve)
    page = asyncio.run(fetch(f"http://rebinding.invalid:{port}/host"))
    assert asked == ["rebinding.invalid"]
    assert page.body == f"rebinding.invalid:{port}".encode()


def test_every_address_of_a_name_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async def two(*_: object, **__: object) -> list[Any]:
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*kind, ("93.184.216.34", 80)), (*kind, ("10.0.0.1", 80))]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", two)
        await fetch("http://two-faced.example/")

    with pytest.raises(WebError, match=r"leads to 10\.0\.0\.1"):
        asyncio.run(run())


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"]
)
def test_public_addresses(address: str) -> None:
    assert is_public(address)


V4 = ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "100.64.0.1"]
V6 = ["::1", "::", "fe80::1", "fc00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1"]
OLD_V6 = ["::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1"]


@pytest.mark.parametrize("address", V4 + V6 + OLD_V6)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


def search(web: str, query: str, monkeypatch: pytest.MonkeyPatch, key: str = "the key") -> ToolResult:
    monkeypatch.setenv("SEARCH_KEY", key)
    tool = SearchTool(WebSearch(f"{web}/search", "SEARCH_KEY", limits=HERE), results=2)
    return asyncio.run(tool.call({"query": query}))


def test_a_search_api_is_asked_with_the_key_of_the_environment(web: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = search(web, "fish & chips", monkeypatch)
    lines = result.text.splitlines()
    assert lines == [
        f"{line}" for n in (1, 2) for line in (f"{n}. Fish", "   http://example.org/fish", "   About fish.")
    ]
    assert search(web, "nothing", monkeypatch).text == "nothing was found"
    assert "did not answer with results at 'web.results'" in search(web, "broken", monkeypatch).error


def test_the_key_is_neither_shown_nor_taken_elsewhere(web: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = search(web, "fish", monkeypatch, key="wrong secret")
    assert "answers 401" in refused.error
    assert "wrong secret" not in refused.error
    assert "redirects more than 0 times" in search(web, "moved", monkeypatch).error


def test_a_missing_key_is_named_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEARCH_KEY", raising=False)
    with pytest.raises(ValueError, match=r"^key_variable: the environment variable SEARCH_KEY is not set; export it"):
        WebSearch("https://api.example/search", "SEARCH_KEY")


@pytest.mark.parametrize("url", ["https://api.example/search?token=hunter2", "https://me:hunter2@api.example/search"])
def test_a_secret_in_the_address_is_refused_and_not_shown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_KEY", "secret")
    with pytest.raises(ValueError, match=r"^url holds a user, a password or a query") as refused:
        WebSearch(url, "SEARCH_KEY")
    assert "hunter2" not in str(refused.value)
