"""The catalogue: what ships, what is laid over it, and how models are found."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from model_server import model_bytes
from specengine import catalog
from specengine.catalog import Catalog
from specengine.errors import EngineError

MIRROR = Path(__file__).parent.parent / "data" / "models-mirror.toml"


@pytest.fixture(scope="module")
def shipped() -> Catalog:
    return catalog.load()


def laid_over(tmp_path: Path, text: str) -> Catalog:
    path = tmp_path / "models.toml"
    path.write_text(text, encoding="utf-8")
    return catalog.load([path])


class TestShipped:
    def test_it_has_the_promised_models_and_drafts(self, shipped: Catalog) -> None:
        drafts = {name: entry.draft for name, entry in shipped.models.items()}
        assert drafts == {
            "smollm2-135m": None,
            "smollm2-1.7b": "smollm2-135m",
            "qwen2.5-coder-0.5b": None,
            **{f"qwen2.5-coder-{size}": "qwen2.5-coder-0.5b" for size in ("1.5b", "3b", "7b", "14b", "32b")},
            "qwen3-0.6b": None,
            **{f"qwen3-{size}": "qwen3-0.6b" for size in ("4b", "8b", "14b")},
            "llama-3.2-1b": None,
            "llama-3.1-8b": "llama-3.2-1b",
        }

    def test_every_entry_can_be_judged_fetched_and_checked(self, shipped: Catalog) -> None:
        for entry in shipped.models.values():
            assert entry.title and entry.parameters and entry.context and entry.shape and entry.safetensors
            assert entry.licence != "unknown"
            assert entry.gguf.repo and entry.gguf.size and entry.gguf.sha256
            assert re.fullmatch("[0-9a-f]{40}", entry.gguf.revision), f"{entry.name} may change under its name"
            assert "-of-" not in entry.gguf.file, "a file in several parts"

    def test_sizes_go_with_the_number_of_weights(self, shipped: Catalog) -> None:
        for entry in shipped.models.values():
            assert entry.gguf.size and entry.parameters
            assert 4 < 8 * entry.gguf.size / (entry.parameters * 1e9) < 9, entry.name

    def test_the_default_is_small_and_to_be_had_without_hugging_face(self, shipped: Catalog) -> None:
        default = shipped.models[shipped.default]
        assert default.gguf.size and default.gguf.size < 100e6
        assert default.gguf.wheels

    def test_licences_that_are_not_free_are_told(self, shipped: Catalog) -> None:
        others = {name: entry.licence for name, entry in shipped.models.items() if entry.licence != "Apache-2.0"}
        assert others == {
            "qwen2.5-coder-3b": "Qwen Research",
            "llama-3.2-1b": "Llama 3.2 Community",
            "llama-3.1-8b": "Llama 3.1 Community",
        }

    def test_it_is_found_as_package_data_and_else_at_the_repository_root(self, tmp_path: Path) -> None:
        """Both layouts for real: a wheel's (beside the modules) and an editable install's (two folders up)."""
        root = Path(catalog.__file__).resolve().parent.parent.parent
        script = "from specengine import catalog; print(catalog.shipped_path()); print(len(catalog.load().models))"
        for engine, toml in (("site", "site/specengine/models.toml"), ("repo/engine", "repo/models.toml")):
            shutil.copytree(root / "engine" / "specengine", tmp_path / engine / "specengine")
            shutil.copy(root / "models.toml", tmp_path / toml)
            command = [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1]); {script}"]
            ran = subprocess.run([*command, str(tmp_path / engine)], capture_output=True, text=True, cwd=tmp_path)
            assert ran.stdout.splitlines() == [str(tmp_path / toml), "14"], ran.stderr


class TestOverlays:
    def test_the_mirror_adds_wheels_and_a_model_and_keeps_the_rest(self, shipped: Catalog) -> None:
        mirrored = catalog.load([MIRROR])
        assert set(mirrored.models) - set(shipped.models) == {"gemma-3-270m"}
        before, after = shipped.models["qwen2.5-coder-1.5b"], mirrored.models["qwen2.5-coder-1.5b"]
        assert (len(before.gguf.wheels), len(after.gguf.wheels)) == (0, 22)
        assert (after.gguf.repo, after.gguf.revision) == (before.gguf.repo, before.gguf.revision)
        assert (after.gguf.sha256, after.draft, after.title) == (before.gguf.sha256, before.draft, before.title)

    def test_single_fields_change_and_the_last_overlay_wins(self, tmp_path: Path) -> None:
        for name, licence in (("a", "A"), ("b", "B")):
            (tmp_path / name).write_text(f'[models."qwen3-8b"]\nlicence = "{licence}"\n')
        assert catalog.load([tmp_path / "a", tmp_path / "b"]).models["qwen3-8b"].licence == "B"

    def test_another_file_does_not_inherit_size_digest_or_source(self, tmp_path: Path) -> None:
        gguf = (
            laid_over(tmp_path, '[models."smollm2-135m".gguf]\nfile = "other.gguf"\nrepo = "me/mine"\n')
            .models["smollm2-135m"]
            .gguf
        )
        assert (gguf.size, gguf.sha256, gguf.wheels, gguf.revision) == (None, None, (), "main")

    def test_another_revision_does_not_inherit_size_and_digest(self, tmp_path: Path) -> None:
        gguf = laid_over(tmp_path, '[models."qwen3-8b".gguf]\nrevision = "newer"\n').models["qwen3-8b"].gguf
        assert (gguf.repo, gguf.size, gguf.sha256) == ("Qwen/Qwen3-8B-GGUF", None, None)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("[models", "is not valid TOML"),
            ('[models.x]\ntitle = "X"\n', r"x: object missing required field `gguf`"),
            ('[models.x.gguf]\nfile = "x.gguf"\nsiez = 1\n', r"x \(gguf\): object contains unknown field `siez`"),
            ('[models.x.gguf]\nfile = "x.gguf"\nsize = "1"\n', r"x \(gguf\.size\): expected `int \| null`, got `str`"),
            ('[models.x.gguf]\nfile = "../x.gguf"\n', r"x \(gguf\.file\)"),
            ('[models.x.gguf]\nfile = "x.gguf"\nrepo = "x"\n', r"x \(gguf\.repo\)"),
            ('[models.x.gguf]\nfile = "x.gguf"\nwheels = ["a==1"]\n', "x names wheels but no sha256"),
            ('[models.x.gguf]\nfile = "x.gguf"\nwheels = ["a"]\n', r"x \(gguf\.wheels"),
            ('[models.x]\ndraft = "y"\ngguf = { file = "x.gguf" }\n', "the draft y of x is not in it"),
            ('default = "y"\n', "default model 'y' is not in it"),
            ("models = 3\n", "models"),
        ],
    )
    def test_a_wrong_one_is_one_sentence_with_file_and_field(self, tmp_path: Path, text: str, words: str) -> None:
        with pytest.raises(EngineError, match=words) as caught:
            laid_over(tmp_path, text)
        assert str(tmp_path / "models.toml") in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_one_that_cant_be_read_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(EngineError, match=r"missing\.toml can't be read: No such file"):
            catalog.load([tmp_path / "missing.toml"])


class TestFinding:
    @pytest.mark.parametrize(
        ("typed", "name"),
        [
            ("qwen2.5-coder-1.5b", "qwen2.5-coder-1.5b"),
            ("Qwen2.5-Coder-1.5B-Instruct", "qwen2.5-coder-1.5b"),
            ("qwen2.5-coder:1.5b", "qwen2.5-coder-1.5b"),
            ("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b"),
            ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "qwen2.5-coder-1.5b"),
            (" SmolLM2 ", "smollm2-135m"),
            ("llama3.1:8b", "llama-3.1-8b"),
        ],
    )
    def test_names_are_found_as_people_write_them(self, shipped: Catalog, typed: str, name: str) -> None:
        assert shipped.find(typed).name == name

    def test_an_unknown_name_is_answered_with_the_closest(self, shipped: Catalog) -> None:
        with pytest.raises(EngineError) as caught:
            shipped.find("qwen3-7b")
        assert "did you mean qwen3-" in str(caught.value)
        assert "`specchat models list`" in str(caught.value)

    def test_a_name_like_nothing_is_answered_without_guesses(self, shipped: Catalog) -> None:
        with pytest.raises(EngineError) as caught:
            shipped.find("xyzzy")
        assert str(caught.value) == "There is no model called 'xyzzy'; `specchat models list` shows them all."

    def test_a_path_to_a_model_file_works_as_a_name(self, shipped: Catalog, tmp_path: Path) -> None:
        path = tmp_path / "My Model.gguf"
        path.write_bytes(model_bytes())
        entry = shipped.find(str(path))
        assert (entry.path, entry.name, entry.gguf.size) == (path, "My Model", path.stat().st_size)
        assert entry.draft is None

    def test_a_file_that_is_no_model_is_told(self, shipped: Catalog, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("hello")
        with pytest.raises(EngineError, match=r"notes\.txt is not a GGUF model file"):
            shipped.find(str(tmp_path / "notes.txt"))
        with pytest.raises(EngineError, match=r"There is no file .*gone\.gguf"):
            shipped.find(str(tmp_path / "gone.gguf"))


@pytest.mark.real
@pytest.mark.parametrize("name", ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"])
def test_the_catalogue_says_of_a_model_what_its_file_says(real_model: Callable[[str], Path], name: str) -> None:
    entry, own = catalog.load().models[name], catalog.from_file(real_model(name))
    assert (own.shape, own.context, own.gguf.size) == (entry.shape, entry.context, entry.gguf.size)
