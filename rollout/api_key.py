"""A key that lives in the environment and nowhere else: settings, checkpoints and messages hold its variable's name."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class ApiKey:
    """The key in the environment variable ``variable``.

    Raises:
        ValueError: the variable is not set, or holds what cannot be a key; the message does not show it.
    """

    variable: str

    def __post_init__(self) -> None:
        self.read()

    def read(self) -> str:
        """The key itself, for a request's header only."""
        key = os.environ.get(self.variable, "").strip()
        if not key:
            raise ValueError(
                f"api_key_env: the environment variable {self.variable} is not set; export it before the run "
                "(the key itself never belongs into a config)"
            )
        if not (key.isascii() and key.isprintable()):
            raise ValueError(f"api_key_env: what {self.variable} holds is no key: a key has printable ASCII only")
        return key

    def redact(self, text: str) -> str:
        """``text`` with the variable's name wherever the key stood."""
        return text.replace(self.read(), f"${self.variable}")
