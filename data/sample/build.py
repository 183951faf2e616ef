"""Builds the bundled samples of facts from ``facts.toml``: ``python -m data.sample.build`` writes three JSONL files.

Every choice is a hash of the text that it is made for, so that adding a fact moves no other one.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from data.scoring.short_answer import normalise_answer

HERE = Path(__file__).parent
TEST_SHARE = 27
"""Percent of the groups that are held out."""

SALT = "facts"
"""Chosen so that every relation has items on both sides."""

POPQA_RELATIONS = ("author", "capital")
"""Those of PopQA's own relations that the tables have."""

POPQA_SPLITS = ("train", "validation", "test")
VALIDATION_SHARE = 15
"""Percent of the training groups that are PopQA's validation split."""


@dataclass(frozen=True)
class Fact:
    """One subject of one relation, its accepted answers (canonical one first), and what must stay in one split."""

    relation: str
    subject: str
    answers: tuple[str, ...]
    group: str
    template: str

    @property
    def question_id(self) -> str:
        """``relation-subject`` in plain ASCII letters."""
        ascii_subject = unicodedata.normalize("NFKD", self.subject).encode("ascii", "ignore").decode()
        return f"{self.relation}-{re.sub(r'[^a-z0-9]+', '-', ascii_subject.lower()).strip('-')}"

    @property
    def split(self) -> str:
        """``test`` for about ``TEST_SHARE`` percent of the groups, else ``train``."""
        return "test" if _draw(SALT, self.group, 100) < TEST_SHARE else "train"


def facts(path: Path = HERE / "facts.toml") -> Iterator[Fact]:
    """Every fact of the tables, in file order."""
    for relation, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for line in table["facts"].strip().splitlines():
            yield from _line_facts(relation, table, line)


def record(fact: Fact) -> dict[str, object]:
    """The fact in TriviaQA's field names, with its relation beside them."""
    question = fact.template.format(fact.subject)
    return {
        "question": question[0].upper() + question[1:],
        "question_id": fact.question_id,
        "relation": fact.relation,
        "answer": {
            "value": fact.answers[0],
            "aliases": list(fact.answers),
            "normalized_aliases": list(dict.fromkeys(normalise_answer(answer) for answer in fact.answers)),
        },
    }


def split_lines(split: str) -> str:
    """The JSONL text of ``split``, relations mixed."""
    chosen = [fact for fact in facts() if fact.split == split]
    chosen.sort(key=lambda fact: _digest("order", fact.question_id))
    return "".join(json.dumps(record(fact), ensure_ascii=False) + "\n" for fact in chosen)


def popqa_split(fact: Fact) -> str:
    """``train``, ``validation`` or ``test``; the last as everywhere."""
    held_back = _draw("popqa", fact.group, 100) < VALIDATION_SHARE
    return "validation" if fact.split == "train" and held_back else fact.split


def popqa_record(number: int, fact: Fact) -> dict[str, object]:
    """The fact in PopQA's field names; the list of answers is JSON text there."""
    return {
        "id": number,
        "subj": fact.subject,
        "prop": fact.relation,
        "obj": fact.answers[0],
        "question": record(fact)["question"],
        "possible_answers": json.dumps(fact.answers, ensure_ascii=False),
    }


def popqa_lines() -> str:
    """The JSONL text of the sample in PopQA's form: one list of rows, to be cut into the splits by number."""
    chosen = [fact for fact in facts() if fact.relation in POPQA_RELATIONS]
    chosen.sort(key=lambda fact: (POPQA_SPLITS.index(popqa_split(fact)), _digest("popqa order", fact.question_id)))
    rows = (popqa_record(number, fact) for number, fact in enumerate(chosen))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write(folder: Path = HERE) -> None:
    """Writes ``facts_train.jsonl``, ``facts_test.jsonl`` and ``popqa.jsonl`` into ``folder``."""
    for split in ("train", "test"):
        (folder / f"facts_{split}.jsonl").write_text(split_lines(split), encoding="utf-8")
    (folder / "popqa.jsonl").write_text(popqa_lines(), encoding="utf-8")


def _line_facts(relation: str, table: Mapping[str, object], line: str) -> Iterator[Fact]:
    left, right = line.split(" => ")
    right, _, named_group = right.partition(" @ ")
    answers = tuple(part.strip() for part in right.split("|"))
    templates = table["templates"]
    assert isinstance(templates, list)
    for subject in (part.strip() for part in left.split(";")):
        group = named_group or (answers[0] if table["group"] == "answer" else subject)
        template = templates[_draw(relation, subject, len(templates))]
        yield Fact(relation, subject, answers, group.lower().removeprefix("the "), template)


def _digest(salt: str, text: str) -> bytes:
    return hashlib.sha256(f"{salt}\0{text}".encode()).digest()


def _draw(salt: str, text: str, below: int) -> int:
    return int.from_bytes(_digest(salt, text)[:8], "big") % below


if __name__ == "__main__":
    write()
