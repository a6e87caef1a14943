"""config.toml, SPECCHAT_… and flags: who wins, and what a mistake is told."""

from pathlib import Path

import pytest

from specchat import config
from specchat.config import Config
from specengine.errors import EngineError
from specengine.settings import Limits, Sampling


def written(folder: Path, text: str) -> Path:
    file = folder / "config.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_no_file_and_no_variable_leave_everything_open(tmp_path: Path) -> None:
    assert config.read(tmp_path / "config.toml", {}) == Config()


def test_a_file_is_read_into_types(tmp_path: Path) -> None:
    file = written(tmp_path, 'model = "x"\nspec = "off"\ntemperature = 1\nlookup = false\nstop = ["END"]\nctx = 4096\n')
    settings = config.from_file(file)
    assert settings == Config(model="x", spec="off", temperature=1.0, lookup=False, stop=("END",), ctx=4096)
    assert settings.sampling(5) == Sampling(temperature=1.0, seed=5)
    assert settings.limits() == Limits(None, ("END",))


def test_the_environment_wins_over_the_file_and_flags_over_both(tmp_path: Path) -> None:
    file = written(tmp_path, "temperature = 0.1\ntop_k = 1\nseed = 1\nlookup = true\n")
    read = config.read(file, {"SPECCHAT_TOP_K": "2", "SPECCHAT_SEED": "2", "SPECCHAT_LOOKUP": "false"})
    settings = config.from_flags({"seed": 3, "top_k": None, "prompt": "not a setting"}).over(read)
    assert settings == Config(temperature=0.1, top_k=2, seed=3, lookup=False)


def test_every_setting_has_its_variable() -> None:
    values = {"int": "3", "float": "0.5", "bool": "true"}
    for name in Config.__struct_fields__:
        kind = str(Config.__annotations__[name])
        named = {"spec": "on", "coupling": "maximal", "engine": "torch", "device": "cpu", "theme": "light"}
        named["keymap"] = "chat.new=f9"
        value = named.get(name, next((text for key, text in values.items() if key in kind), "text"))
        read = config.from_environment({f"SPECCHAT_{name.upper()}": value})
        assert getattr(read, name) is not None, name


def test_a_broken_variable_does_no_harm_where_a_flag_overrides_it(tmp_path: Path) -> None:
    environment = {"SPECCHAT_SEED": "many", "SPECCHAT_TOP_K": "3"}
    settings = config.read(tmp_path / "config.toml", environment, config.from_flags({"seed": 7}))
    assert settings == Config(seed=7, top_k=3)
    with pytest.raises(EngineError, match=r"^SPECCHAT_SEED: seed: expected a whole number"):
        config.read(tmp_path / "config.toml", environment, config.from_flags({"top_k": 7}))


@pytest.mark.parametrize(
    "text", ['[keymap]\n"chat.new" = "f9"\n', '[keymap]\nchat.new = "f9"\n', 'keymap.chat.new = "f9"\n']
)
def test_keys_are_named_by_action_with_quotes_or_without(tmp_path: Path, text: str) -> None:
    assert config.from_file(written(tmp_path, text)) == Config(keymap={"chat.new": "f9"})
    assert config.from_environment({"SPECCHAT_KEYMAP": "chat.new = f9\n"}) == Config(keymap={"chat.new": "f9"})


def test_an_empty_variable_says_nothing() -> None:
    assert config.from_environment({"SPECCHAT_MODEL": "", "SPECCHAT_MODELS": "/elsewhere"}) == Config()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('\n# mine\ntemperature = "hot"\n', "line 3: temperature: expected a number, got text."),
        ("seed = 1\ntop_p = 7\n", "line 2: top-p is 7.0; it must lie between 0 and 1."),
        ("ctx = 0\n", "line 1: ctx: expected a whole number >= 1."),
        ('spec = "maybe"\n', "line 1: spec: invalid enum value 'maybe'"),
        ("max_tokens = 0\n", "line 1: max-tokens is 0; it must be 1 or more."),
        ("temprature = 1\n", "line 1: there is no setting called temprature; did you mean temperature?"),
        ("[sampling]\nseed = 1\n", "line 1: there is no setting called sampling; "),
        ("seed = 1\nseed = 2\n", "is not valid TOML: Cannot overwrite a value (at line 2, column 9)."),
        ('stop = ["a", 3]\n', "line 1: stop"),
        ('theme = "blue"\n', "line 1: theme: there is none called blue; choose dark, light, ansi, "),
        ('[keymap]\n"chat.new" = 3\n', "line 1: keymap: expected text, got a whole number."),
        ("keymap = 3\n", "line 1: keymap: expected a table, got a whole number."),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(EngineError) as error:
        config.from_file(file)
    assert str(error.value).startswith(str(file))
    assert sentence in str(error.value)
    assert "`" not in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_is_no_text_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(EngineError, match=r"config\.toml can't be read: it is not UTF-8 text"):
        config.from_file(tmp_path / "config.toml")


def test_a_mistake_in_a_variable_names_it() -> None:
    with pytest.raises(EngineError, match=r"^SPECCHAT_TOP_K: top-k: expected a whole number"):
        config.from_environment({"SPECCHAT_TOP_K": "many"})
    with pytest.raises(EngineError, match=r"^SPECCHAT_MIN_P: min-p is 2.0; it must lie between 0 and 1"):
        config.from_environment({"SPECCHAT_MIN_P": "2"})


def test_a_flag_out_of_range_is_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"^top-p is 3.0; it must lie between 0 and 1\.$"):
        config.from_flags({"top_p": 3})
