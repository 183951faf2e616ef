"""A key that lives in the environment and nowhere else: settings, checkpoints and messages hold its variable's name."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True)
class ApiKey:
    """The key in the environment variable ``variable``, which the config's ``setting`` names.

    Raises:
        ValueError: ``variable`` is no such name in capitals (a key, say, which the message does not show); it is not
            set; it holds what cannot be a key.
    """

    variable: str
    setting: str = field(default="api_key_env", repr=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", self.variable):
            raise ValueError(
                f"{self.setting} must be the NAME of an environment variable, in capitals (OPENAI_API_KEY); what is "
                "given is not shown here, for it may be the key itself: then take it out of the config and revoke it"
            )
        self.read()

    def read(self) -> str:
        """The key itself, for a request's header only."""
        key = os.environ.get(self.variable, "").strip()
        if not key:
            raise ValueError(
                f"{self.setting}: the environment variable {self.variable} is not set; export it before the run "
                "(the key itself never belongs into a config)"
            )
        if not (key.isascii() and key.isprintable()):
            raise ValueError(f"{self.setting}: what {self.variable} holds is no key: a key has printable ASCII only")
        return key

    def redact(self, text: str) -> str:
        """``text`` with the variable's name wherever the key stood."""
        return text.replace(self.read(), f"${self.variable}")


def check_no_secret(setting: str, url: str) -> None:
    """Raises ``ValueError``, which does not show it, for a ``url`` with a user, a password or a query."""
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query:
        raise ValueError(
            f"{setting} holds a user, a password or a query, which saved configs and messages would show; "
            "give the plain address, and the name of the variable with the key beside it"
        )
