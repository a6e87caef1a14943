"""The catalogue: what ships, what is laid over it, and how models are found."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.real
@pytest.mark.parametrize("name", ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "gemma-3-270m"])
def test_models_of_the_mirror_are_found_by_the_tests(real_model: Callable[[str], Path], name: str) -> None:
    assert real_model(name).is_file()
