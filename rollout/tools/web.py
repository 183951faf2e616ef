"""HTTP for agents: connections go to addresses that were checked, sizes and times are bounded."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx

_ENCODINGS: Final = ("", "identity", "gzip", "deflate")
_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")


class WebError(Exception):
    """A page that could not be had, in words for the agent."""


@dataclass(frozen=True)
class WebLimits:
    """Bounds of one fetch; all `ours`.

    Attributes:
        seconds: from the first look-up to the last byte, redirects included.
        max_bytes: of the body, decompressed.
        redirects: followed at most.
        allow_private: also addresses that are not public, as tests and intranets need.
    """

    seconds: float = 20.0
    max_bytes: int = 8 * 1024 * 1024
    redirects: int = 5
    allow_private: bool = False


@dataclass(frozen=True)
class Page:
    """A body as it came.

    Attributes:
        url: where it was found in the end.
        content_type: lower-case media type, without parameters.
        charset: as the header names it; empty if it does not.
        body: decompressed.
        cut: the body was longer.
    """

    url: str
    content_type: str
    charset: str
    body: bytes
    cut: bool


class CheckedTransport(httpx.AsyncBaseTransport):
    """Resolves a host once, refuses addresses that are not public, and connects to the address that it checked.

    A second look-up cannot lead elsewhere, and each redirect passes through here again. TLS still verifies the name.
    """

    def __init__(self, allow_private: bool) -> None:
        self.allow_private = allow_private
        self.inner = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send ``request`` to a checked address. Raises :class:`WebError` for one that is refused."""
        url = request.url
        if url.scheme not in ("http", "https") or not url.host:
            raise WebError(f"only http and https addresses can be opened, not {str(url)!r:.100}")
        address = await self._checked_address(url.host, url.port or {"http": 80, "https": 443}[url.scheme])
        checked = httpx.Request(
            method=request.method,
            url=url.copy_with(host=address),
            headers=request.headers,  # "host" is in them already, by its name
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": url.host},
        )
        return await self.inner.handle_async_request(checked)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.inner.aclose()

    async def _checked_address(self, host: str, port: int) -> str:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise WebError(f"the host {host!r} is not known: {error}") from error
        addresses = [str(entry[4][0]).partition("%")[0] for entry in found]
        if not self.allow_private and (private := [address for address in addresses if not is_public(address)]):
            raise WebError(f"{host!r} leads to {private[0]}, which is not a public address")
        return addresses[0]


def is_public(address: str) -> bool:
    """Whether anyone may be sent there: not loopback, private, link-local, multicast or reserved."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour or (parsed.teredo and parsed.teredo[1])
        if inner:
            return is_public(str(inner))
        if parsed in ipaddress.ip_network("64:ff9b::/96"):
            return is_public(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
        # Outside it lie forms that wrap an IPv4 address in older ways, which some networks still translate.
        if parsed not in _GLOBAL_UNICAST:
            return False
    return parsed.is_global and not parsed.is_multicast


async def fetch(url: str, limits: WebLimits = WebLimits(), headers: Mapping[str, str] | None = None) -> Page:
    """The body behind ``url``. Cut at ``limits.max_bytes``, which a body without end or a small bomb reaches too.

    Raises:
        WebError: refused, unreachable, too slow, too many redirects, an error status, or an unreadable answer.
    """
    try:
        async with (
            asyncio.timeout(limits.seconds),
            _client(limits) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            return await _read(response, limits.max_bytes)
    except TimeoutError as error:
        raise WebError(f"{url} took longer than {limits.seconds:g} s") from error
    except httpx.TooManyRedirects as error:
        raise WebError(f"{url} redirects more than {limits.redirects} times") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise WebError(f"{url} could not be read: {type(error).__name__} {error}".rstrip()) from error


def _client(limits: WebLimits) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=CheckedTransport(limits.allow_private),
        follow_redirects=True,
        max_redirects=limits.redirects,
        timeout=limits.seconds,
        trust_env=False,
        headers={"User-Agent": "mas-memory (research)", "Accept-Encoding": "gzip, deflate"},
    )


async def _read(response: httpx.Response, max_bytes: int) -> Page:
    if response.status_code >= 400:
        raise WebError(f"{response.url} answers {response.status_code} {response.reason_phrase}".rstrip())
    # Layers of compression, and kinds that were not asked for, multiply what a byte can unfold to.
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in _ENCODINGS:
        raise WebError(f"{response.url} is encoded as {encoding!r:.50}, which was not asked for")
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > max_bytes:
            break
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    charset = response.charset_encoding or ""
    return Page(str(response.url), media_type, charset, bytes(body[:max_bytes]), len(body) > max_bytes)
