"""BM25 by hand, the corpus' forms, and what an agent is shown of them."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.tools.bm25 import BM25
from rollout.tools.corpus import html_text, load_corpus
from rollout.tools.corpus_page import CorpusPageTool
from rollout.tools.search import CorpusSearch, SearchTool, snippet

TEXTS = ["a cat sat", "a dog sat on a cat", "birds fly"]


def test_bm25_by_hand() -> None:
    # N = 3, |d| = 3, 6, 2, avgdl = 11/3; "cat" stands once in two documents.
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    short = idf * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 3 / (11 / 3)))
    long = idf * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 6 / (11 / 3)))
    found = BM25(TEXTS).search("CAT?", 5)
    assert [number for number, _ in found] == [0, 1]
    assert [score for _, score in found] == pytest.approx([short, long])


def test_a_rare_word_counts_for_more() -> None:
    assert BM25(TEXTS).search("a dog", 1)[0][0] == 1
    assert BM25(TEXTS).search("sat fly", 1)[0][0] == 2


def test_nothing_in_common_is_nothing_found() -> None:
    assert BM25(TEXTS).search("whale", 5) == []
    assert BM25([]).search("cat", 5) == []
    assert BM25(["", ""]).search("cat", 5) == []


@given(st.lists(st.text(max_size=30), max_size=8), st.text(max_size=20), st.integers(0, 5))
def test_results_are_sorted_positive_and_no_more_than_asked(texts: list[str], query: str, limit: int) -> None:
    found = BM25(texts).search(query, limit)
    assert len(found) <= limit
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


def test_a_folder_is_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.md").write_text("# Title of a\ntext of a")
    (tmp_path / "deep" / "b.html").write_text("<title>B &amp; C</title><style>p {}</style><p>text of b")
    (tmp_path / "c.txt").write_text("")
    (tmp_path / "d.pdf").write_text("not read")
    documents = load_corpus(tmp_path)
    assert [(document.title, document.address) for document in documents] == [
        ("Title of a", "a.md"),
        ("c", "c.txt"),
        ("B & C", "deep/b.html"),
    ]
    assert documents[2].text == "text of b"


def test_records_are_a_corpus(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    record = {"title": "T", "url": "http://x", "text": "words"}
    path.write_text(json.dumps(record) + "\n\n")
    assert [(found.title, found.address, found.text) for found in load_corpus(path)] == [("T", "http://x", "words")]


@pytest.mark.parametrize("line", ["{", '{"title": "T", "url": "u"}', "[]", "1"])
def test_a_bad_record_is_named_by_file_and_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(f"\n{line}\n")
    with pytest.raises(ValueError, match=r"corpus\.jsonl, line 2: a record needs title, url and text"):
        load_corpus(path)


def test_no_corpus_and_an_empty_one_are_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_corpus(tmp_path / "none")
    with pytest.raises(ValueError, match="holds no document"):
        load_corpus(tmp_path)


@given(st.text())
def test_any_html_gives_a_title_and_text(source: str) -> None:
    title, text = html_text(source)
    assert "\n" not in title
    assert text == text.strip()


def test_what_is_found_can_be_opened(tmp_path: Path) -> None:
    (tmp_path / "fish.txt").write_text("Lantern fish\n" + "filler " * 200 + "They glow in the dark. " + "more " * 200)
    (tmp_path / "cat.txt").write_text("Cats\nThey purr.")
    source = CorpusSearch(tmp_path)
    found = asyncio.run(SearchTool(source).call({"query": "what does glow in the dark"}))
    assert found.text.startswith("1. Lantern fish\n   fish.txt\n   ")
    assert "They glow in the dark." in found.text
    tool = CorpusPageTool(source.documents, max_characters=20)
    page = asyncio.run(tool.call({"url": "fish.txt"}))
    assert page.text.startswith("Lantern fish\nLantern")
    assert "read on with start=20" in page.text
    assert "not in the corpus" in asyncio.run(tool.call({"url": "whale.txt"})).error


@given(st.text(max_size=2000), st.text(max_size=30))
def test_a_snippet_is_short(text: str, query: str) -> None:
    assert len(snippet(text, query)) <= 240
