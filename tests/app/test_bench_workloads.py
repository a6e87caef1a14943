"""What the bench asks: short enough for a small machine, and as the help says."""

import ast
import re

import pytest

from specchat.bench.workloads import MISSING, NAMES, NEW_NAME, OLD_NAME, workload


def test_the_names_are_those_of_the_help() -> None:
    from click.testing import CliRunner

    from specchat.bench.command import bench

    said = CliRunner().invoke(bench, ["--help"]).output
    table = said.partition("Workloads:")[2].partition("Modes:")[0]
    assert re.findall(r"^ *(\w+)  +\w", table, re.MULTILINE) == [*NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_short_enough_for_a_small_machine(name: str) -> None:
    made = workload(name)
    assert made.name == name
    assert 100 < len("".join((made.system, *made.turns))) < 6500
    assert made.temperature == (1.0 if name == "story" else None)


def test_edit_is_whole_code_of_about_6000_characters() -> None:
    edit = workload("edit")
    code = edit.prompt.split("```python\n")[1].removesuffix("```")
    compile(code, "edit", "exec")
    assert 5000 < len(code) < 7500
    assert code.count(OLD_NAME) > 15
    assert NEW_NAME not in code
    assert edit.copies and not any(workload(name).copies for name in NAMES if name != "edit")


def test_complete_is_a_module_with_two_bodies_and_all_docstrings_missing() -> None:
    code = workload("complete").prompt.split("```python\n")[1].removesuffix("```")
    functions = [node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    assert [function.name for function in functions] == ["hsv_to_rgb", "rgb_to_hsv", "rgb_to_yiq", "yiq_to_rgb"]
    assert not any(ast.get_docstring(function) for function in functions)
    assert code.count(MISSING) == 2


def test_extract_is_prose_that_comes_with_python_without_its_drawing() -> None:
    prompt = workload("extract").prompt
    assert "Heaps are also very useful in big disk sorts" in prompt
    assert "15 16" not in prompt and "---" not in prompt


def test_chat_asks_for_prose_and_copies_of_one_document_in_turn() -> None:
    chat = workload("chat")
    assert len(chat.turns) == 4
    document = chat.turns[0]
    for quoted in re.findall(r"'([A-Z][\w ']+?)'", " ".join(chat.then)):
        assert f"## {quoted}\n" in document
    assert document.count("crowns") > 3
    assert all(document[:200] not in turn for turn in chat.then)


def test_json_asks_about_five_messages() -> None:
    assert workload("json").prompt.count("\nFrom: ") == 5
