"""Chats as documents."""

import json
import os
from pathlib import Path

import pytest

from specchat import export
from specchat.chat import Answer, Conversation, Ending, Turn
from specchat.export import closed, open_fence
from specchat.store.chats import Kept, Listed
from specchat.title import file_name, one_line, title_of
from specengine.errors import EngineError


def kept(*answers: str, title: str = "A title", ending: Ending = "end") -> Kept:
    turns: list[Turn] = []
    for number, text in enumerate(answers):
        given = Answer(text, ending, (1, 2), None, "tiny-1b", ended_s=20.0)
        turns.append(Turn(f"prompt {number}", "shown", given, number, number - 1 if number else None, 10.0 + number))
    listed = Listed("aaaa", title, 1_700_000_000.0, 1_700_000_100.0, None, "tiny-1b", len(turns))
    other = Turn("elsewhere", "elsewhere", Answer("other branch", "end"), 99, None, 5.0)
    return Kept(listed, Conversation("Be brief.", tuple(turns), (other,)), model="tiny-1b")


def test_markdown_has_title_model_and_date_then_the_branch_that_is_shown() -> None:
    front, _, body = export.markdown(kept("one", "two", title='A "title": with [/b]'))[4:].partition("\n---\n")
    lines = dict(line.split(": ", 1) for line in front.splitlines())
    assert json.loads(lines["title"]) == 'A "title": with [/b]'  # a JSON string is a YAML string too
    assert json.loads(lines["model"]) == "tiny-1b"
    assert lines["date"].startswith("2023-11-1")
    assert body == (
        '\n# A "title": with [/b]\n\n## System\n\nBe brief.\n\n## You\n\nprompt 0\n\n## tiny-1b\n\none\n'
        "\n## You\n\nprompt 1\n\n## tiny-1b\n\ntwo\n"
    )


def test_fences_inside_answers_survive_as_they_are() -> None:
    answer = "Look:\n\n````md\n```python\nx = 1\n```\n````\n\nand\n\n~~~\n```\n~~~"
    assert f"\n{answer}\n" in export.markdown(kept(answer))


@pytest.mark.parametrize(
    ("text", "fence"),
    [
        ("```python\nx = 1", "```"),
        ("````\n```\nx", "````"),
        ("~~~\n```", "~~~"),
        ("- item\n\n  ```sh\n  ls", "```"),
        ("```\nx\n```", ""),
        ("```\nx\n````", ""),
        ("```\nx\n``` no end", "```"),
        ("a `` ``` `` b", ""),
        ("plain", ""),
    ],
)
def test_a_fence_that_was_left_open_is_closed_so_that_it_swallows_nothing(text: str, fence: str) -> None:
    assert open_fence(text) == fence
    assert closed(text) == (f"{text}\n{fence}" if fence else text)


def test_a_broken_off_answer_says_so() -> None:
    assert export.markdown(kept("```\nx =", ending="failed")).endswith("```\nx =\n```\n\n*(broken off)*\n")


def test_json_holds_all_branches_and_all_that_is_known() -> None:
    found = json.loads(export.exported(kept("one [/b]", "日本語"), "json"))
    assert (found["format"], found["id"], found["title"], found["system"]) == (1, "aaaa", "A title", "Be brief.")
    assert found["branch"] == [0, 1]
    assert [turn["answer"]["text"] for turn in found["turns"]] == ["other branch", "one [/b]", "日本語"]
    assert found["turns"][2]["answer"]["tokens"] == [1, 2]
    assert (found["turns"][2]["parent"], found["turns"][2]["answer"]["model"]) == (0, "tiny-1b")


def test_a_file_is_never_overwritten_unless_that_was_said(tmp_path: Path) -> None:
    file = tmp_path / "chat.md"
    assert export.written("one\n", file) == file
    with pytest.raises(EngineError, match=r"chat\.md is there already; choose another name\."):
        export.written("two\n", file)
    assert file.read_text() == "one\n"
    export.written("two\n", file, replace=True)
    assert file.read_text() == "two\n"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_written_into_and_stays_and_a_link_too(tmp_path: Path) -> None:
    pipe, link, file = tmp_path / "pipe", tmp_path / "link.md", tmp_path / "file.md"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    export.written("one\n", pipe, replace=True)
    assert os.read(reader, 9) == b"one\n" and pipe.is_fifo()
    os.close(reader)
    file.write_text("two\n")
    link.symlink_to(file)
    export.written("three\n", link, replace=True)
    assert file.read_text() == "three\n" and link.is_symlink()


def test_a_file_that_can_not_be_written_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"x\.md can't be written: No such file or directory; choose another place\."):
        export.written("x", tmp_path / "missing" / "x.md")
    with pytest.raises(EngineError, match=r"can't be written"):
        export.written("x", tmp_path, replace=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("prompt", "shown", "title"),
    [
        ("What is a KV cache?", "What is a KV cache?", "What is a KV cache?"),
        ("\n\n  Two\tlines \nmore", "\n\n  Two\tlines \nmore", "Two lines"),
        ("def f(): pass\n\nExplain this", "[Pasted #1: 300 lines] Explain this", "Explain this"),
        ("def f(): pass\n...", "[Pasted #1: 300 lines]", "def f(): pass"),
        ("```\ncode\n```", "```\ncode\n```", "code"),
        ("\x1b[31mred\x07", "\x1b[31mred\x07", "[31mred"),
        ("...", "", "..."),
        ("   ", "   ", "Untitled"),
        ("word " * 50, "word " * 50, "word " * 11 + "word…"),
    ],
)
def test_a_chat_is_called_by_its_first_words(prompt: str, shown: str, title: str) -> None:
    assert title_of(prompt, shown) == title


def test_file_names_suit_every_system() -> None:
    assert file_name("What is a KV/cache?", ".md") == "what-is-a-kv-cache.md"
    assert file_name("日本語: ???", ".json") == "日本語.json"
    assert file_name("...", ".md") == "chat.md"
    assert one_line("") == ""
