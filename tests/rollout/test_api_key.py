from __future__ import annotations

import pickle

import pytest

from rollout.api_key import ApiKey

SECRET = "sk-test-0123456789abcdef"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> ApiKey:
    monkeypatch.setenv("MAS_TEST_KEY", f" {SECRET}\n")
    return ApiKey("MAS_TEST_KEY")


def test_it_is_read_from_the_environment_without_the_line_end_of_a_file(key: ApiKey) -> None:
    assert key.read() == SECRET


def test_only_the_name_is_kept(key: ApiKey) -> None:
    assert repr(key) == "ApiKey(variable='MAS_TEST_KEY')"
    assert SECRET.encode() not in pickle.dumps(key)
    assert key.redact(f"Bearer {SECRET}, {SECRET}") == "Bearer $MAS_TEST_KEY, $MAS_TEST_KEY"


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("MAS_TEST_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MAS_TEST_KEY", value)
    with pytest.raises(ValueError, match=r"^api_key_env: the environment variable MAS_TEST_KEY is not set; export it"):
        ApiKey("MAS_TEST_KEY")


@pytest.mark.parametrize("value", ["sk-one\nsk-two", "schlüssel"])
def test_what_no_header_takes_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("MAS_TEST_KEY", value)
    with pytest.raises(ValueError, match="what MAS_TEST_KEY holds is no key") as refused:
        ApiKey("MAS_TEST_KEY")
    assert value not in str(refused.value)
