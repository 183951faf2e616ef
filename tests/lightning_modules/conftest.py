"""One tiny model on disk for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lightning_modules.parts import save_tiny_model


@pytest.fixture(scope="session")
def tiny_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("tiny_lm"))
