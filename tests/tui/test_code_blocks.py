"""The code in an answer."""

from specchat.tui.code_blocks import CodeBlock, code_blocks


def test_code_comes_without_fences_and_as_it_was_written() -> None:
    """50. Neither soft wraps nor fences get into what is copied."""
    long_line = "x = " + "1 + " * 100 + "1"
    answer = f"Look:\n\n```python\nif x:\n    {long_line}\n```\n\nand `inline`\n\n~~~\nplain\n\n~~~\nend"
    assert code_blocks(answer) == [CodeBlock("python", f"if x:\n    {long_line}\n"), CodeBlock("", "plain\n\n")]


def test_a_block_in_a_list_loses_the_indentation_of_the_list() -> None:
    assert code_blocks("1. Do\n\n   ```sh\n   ls\n     -l\n   ```\n") == [CodeBlock("sh", "ls\n  -l\n")]


def test_a_fence_inside_a_longer_fence_is_code() -> None:
    assert code_blocks("````md\n```py\nx\n```\n````") == [CodeBlock("md", "```py\nx\n```\n")]


def test_a_block_that_was_cut_off_counts_too() -> None:
    assert code_blocks("```py\nx = 1\ny =") == [CodeBlock("py", "x = 1\ny =")]


def test_prose_has_no_code() -> None:
    assert code_blocks("nothing `here`") == []
