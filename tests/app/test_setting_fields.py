"""The settings form's fields: every one means what it says and refuses what it doesn't hold."""

import re
from dataclasses import fields, replace

import pytest

from specchat.chat import Settings
from specchat.config import Config
from specchat.setting_fields import FIELDS, Chosen, FieldErrors, defaults_to_save, fields_for, read, texts, values
from specengine.settings import Limits, Sampling

START = Chosen(Settings(Sampling(seed=7)), "Be brief.")


def test_every_setting_of_sampling_and_speculation_has_a_field_that_config_knows() -> None:
    names = [field.name for field in FIELDS]
    assert set(names) == {field.name for field in fields(Sampling)} | {
        "ctx", "max_tokens", "spec", "gamma", "lookup", "system",
    }  # fmt: skip
    assert set(names) <= set(Config.__struct_fields__) and len(set(names)) == len(names)
    assert set(texts(START)) == set(names)
    for field in FIELDS:
        assert field.explanation.endswith(".") and "\n" not in field.explanation
        assert bool(field.bounds) != bool(field.choices)


def test_what_is_shown_reads_back_as_it_was() -> None:
    settings = Settings(
        Sampling(1.25, 40, 0.9, 0.05, 1.1, 0.2, -0.3, 128, 2**64 - 1, "maximal"), Limits(300, ("END",)), "on", 3, False,
        True, 4096,
    )  # fmt: skip
    for chosen in (Chosen(settings, "two\nlines"), START):
        assert read(texts(chosen), START if chosen is START else replace(chosen, system="")) == chosen


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("ctx", "4096", 4096),
        ("ctx", "", None),
        ("max_tokens", " 20 ", 20),
        ("max_tokens", "", None),
        ("temperature", "0", 0.0),
        ("gamma", "0", 0),
        ("gamma", "", None),
        ("spec", "off", "off"),
        ("lookup", "off", False),
        ("coupling", "maximal", "maximal"),
        ("seed", "5", 5),
        ("system", "  as typed\n", "  as typed\n"),
    ],
)
def test_a_field_changes_its_setting_and_no_other(name: str, text: str, value: object) -> None:
    before, after = values(START), values(read({name: text}, START))
    assert after[name] == value
    assert {key: other for key, other in after.items() if key != name} == {
        key: other for key, other in before.items() if key != name
    }


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("ctx", "63", "64 or more"),
        ("ctx", "many", "a whole number"),
        ("max_tokens", "0", "1 or more"),
        ("temperature", "warm", "a number, 0.7 for example"),
        ("temperature", "", "a number"),
        ("temperature", "nan", "between 0 and 100"),
        ("top_k", "1.5", "a whole number"),
        ("top_p", "0", "greater than 0"),
        ("gamma", "-1", "0 to 127"),
        ("gamma", "128", "0 to 127"),
        ("seed", "-1", "between 0 and"),
    ],
)
def test_what_a_field_cant_hold_is_explained(name: str, text: str, words: str) -> None:
    with pytest.raises(FieldErrors) as caught:
        read({name: text, "system": "new"}, START)
    assert list(caught.value.errors) == [name]
    assert words in caught.value.errors[name] and caught.value.errors[name].endswith(".")


def test_the_bounds_that_a_field_states_are_its_bounds() -> None:
    stated = 0
    for field in FIELDS:
        if found := re.match(r"(-?[\d.]+) to (\d+)", field.bounds):
            low, high = found[1], found[2]
            step = 0.001 if isinstance(getattr(Sampling(), field.name, 0), float) else 1
            read({field.name: low}, START)
            read({field.name: high}, START)
            for beyond in (type(step)(low) - step, type(step)(high) + step):
                with pytest.raises(FieldErrors):
                    read({field.name: str(beyond)}, START)
            stated += 1
    assert stated >= 5


def test_a_context_longer_than_the_model_was_trained_for_is_explained() -> None:
    assert read({"ctx": "32768"}, START, longest=32768).settings.n_ctx == 32768
    with pytest.raises(FieldErrors, match="at most 32,768, what the model was trained for"):
        read({"ctx": "32769"}, START, longest=32768)
    bounds = {field.name: field.bounds for field in fields_for(32768)}
    assert bounds["ctx"] == "64 to 32,768; empty: at most 8192"
    assert fields_for(None) == FIELDS


def test_an_empty_seed_draws_a_new_one() -> None:
    seeds = {read({"seed": ""}, START).settings.sampling.seed for _ in range(3)}
    assert len(seeds) == 3


def test_what_equals_the_built_in_default_is_taken_out_of_the_file() -> None:
    changed = read({"temperature": "0.2", "max_tokens": "50", "system": ""}, START)
    saved = defaults_to_save(changed, seed=False)
    assert {name: value for name, value in saved.items() if value is not None} == {"temperature": 0.2, "max_tokens": 50}
    assert "seed" not in saved and saved["top_k"] is None and saved["system"] is None
    assert defaults_to_save(changed, seed=True)["seed"] == 7
