"""The messages between the app and the engine process; both sides encode them with msgspec's msgpack.

App → engine: Load, Generate, Adjust, Stop, Measure…. Engine → app: Progress, Loaded, Prefilling, Chunk, Done, Notice,
what was measured, Failed.
A frame is a 4-byte big-endian length and that many bytes.
"""

from pathlib import PurePath
from typing import Literal

import msgspec

from specengine.settings import Device, EngineChoice, Limits, Sampling, Speculation
from specengine.stats import Stats


class Message(msgspec.Struct, frozen=True):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str
    tokens: tuple[int, ...] | None = None
    """The ids that the engine emitted for this answer (Done.tokens), so that its KV cache is found again."""


class Chat(msgspec.Struct, frozen=True, tag=True):
    """A prompt made by the model's chat template.

    The last message is the user's, or the assistant's: an answer that is to go on where its content ends. It then goes
    on as it would have without the pause, where its `tokens` are those emitted for it. A U+FFFD at its end that stands
    for half a character should be taken away first; the model writes that character again.
    """

    messages: tuple[Message, ...]


class Raw(msgspec.Struct, frozen=True, tag=True):
    """Text to be continued as it is, without a template."""

    text: str


class Infill(msgspec.Struct, frozen=True, tag=True):
    """Text before and after a gap that the model fills (fill-in-the-middle)."""

    prefix: str
    suffix: str


class Load(msgspec.Struct, frozen=True, tag=True):
    """Loads a target and perhaps a draft model, replacing what was loaded. Answered by Progress…, Loaded or Failed."""

    model: str
    """Path of the target: a .gguf file, or a Hugging Face folder."""
    name: str = ""
    """What to call it; the file's own name if empty."""
    draft: str | None = None
    """Path of the draft model, in the same way."""
    draft_name: str = ""
    self_draft: bool = False
    """Instead of a draft model, the target drafts for itself with some of its layers left out; torch alone can."""
    weights: str | None = None
    """The target once more as a Hugging Face folder, where `model` is a .gguf file: what torch would load."""
    draft_weights: str | None = None
    engine: EngineChoice = "auto"
    device: Device = "auto"
    n_ctx: int | None = None
    """Context size in tokens; None takes the smaller of the model's own and 8192, less where memory is short."""
    threads: int | None = None
    """None takes the physical cores."""
    gpu_layers: int | None = None
    """Layers to run on a GPU; None takes all of them where the llama.cpp build has a GPU backend."""
    exact: bool = False
    """Take the KV cache type for which passes of all widths agree, at some cost in speed."""
    costs_file: str | None = None
    """Where measured pass costs are kept between starts; None keeps them in memory only."""
    kept_dir: str | None = None
    """Folder for weights that torch has quantised, so that the next start reads them; None keeps none."""

    @property
    def called(self) -> str:
        """What the target is called in messages."""
        return self.name or _stem(self.model)

    @property
    def draft_called(self) -> str:
        """What the draft model is called."""
        return "self" if self.self_draft else self.draft_name or _stem(self.draft or "")


def _stem(path: str) -> str:
    return PurePath(path).name.removesuffix(".gguf")


class Generate(msgspec.Struct, frozen=True, tag=True):
    """Asks for one answer. Answered by Prefilling…, Chunk… and Done, or by Failed, all with the same id."""

    id: int
    prompt: Chat | Raw | Infill
    sampling: Sampling = Sampling()
    limits: Limits = Limits()
    speculation: Speculation = "auto"
    gamma: int | None = None
    """A fixed draft length; None lets the engine choose each round."""
    lookup: bool = True
    draft: bool = True
    aside: bool = False
    """Not part of the conversation: it starts from fresh acceptance estimates and leaves none behind, so that answers
    compared with each other start from the same."""


class Adjust(msgspec.Struct, frozen=True, tag=True):
    """Live controls: they take effect with the next round of the running answer."""

    speculation: Speculation
    gamma: int | None = None


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Ends the running answer (or its prefill, or a load); what was emitted stays and Done follows."""

    id: int


class MeasureWidthNoise(msgspec.Struct, frozen=True, tag=True):
    """Asks whether narrow and wide passes agree on this model file and machine. Answered by WidthNoise or Failed."""


class MeasureNearTie(msgspec.Struct, frozen=True, tag=True):
    """Asks whether two answers to one request parted at a near-tie. Answered by NearTie or Failed."""

    request: Generate
    shared: tuple[int, ...]
    """The ids that both answers begin with."""
    tokens: tuple[int, int]
    """What each goes on with."""


ToEngine = Load | Generate | Adjust | Stop | MeasureWidthNoise | MeasureNearTie


class Progress(msgspec.Struct, frozen=True, tag=True):
    """Loading: what is being done, and how much of it (0 to 1)."""

    what: str
    fraction: float


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """A model is ready."""

    name: str
    path: str
    backend: str
    device: str
    """Where the weights are, in words: "CPU, 2 threads"."""
    n_ctx: int
    n_vocab: int
    draft: str | None = None
    """Name of the draft model in use."""
    draft_refused: str | None = None
    """Why the wanted draft model is not used, in one sentence."""
    speculation_refused: str | None = None
    """Why this model only decodes plainly, in one sentence."""
    infill: bool = False
    """The model can fill in the middle."""
    template: bool = True
    """The model has a chat template; without one, only Raw and Infill prompts work."""
    notices: tuple[str, ...] = ()
    n_ctx_trained: int | None = None
    """Longest context that the model was trained for, where its file says so."""
    versions: str = ""
    """The packages that compute, with their versions."""


class Prefilling(msgspec.Struct, frozen=True, tag=True):
    """Reading the prompt: tokens done of those that were not in the KV cache yet."""

    id: int
    done: int
    total: int


class Token(msgspec.Struct, frozen=True, array_like=True):
    """Text of one emitted token and who wrote it: "target", or the source whose draft of it was accepted.

    The text may be empty, or come in parts. The counts add up to Stats.emitted, and those of a source to what was
    accepted from it.
    """

    text: str
    source: str
    count: int = 1
    """0 for a part of a token that is counted with another part of it."""


class Chunk(msgspec.Struct, frozen=True, tag=True):
    """What one round added to the answer. The text is clean: whole characters, no control sequences."""

    id: int
    tokens: tuple[Token, ...]
    stats: Stats

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)


Reason = Literal["end", "stop", "length", "context", "stopped"]
"""Why an answer ended: the model ended it, a stop string, max tokens, a full context, or the user."""


class Done(msgspec.Struct, frozen=True, tag=True):
    """The answer is complete. A last Chunk with held-back text comes before it."""

    id: int
    reason: Reason
    tokens: tuple[int, ...]
    """The emitted ids, to be kept with the answer (Message.tokens); of an answer that went on, all of it."""
    stats: Stats


class Notice(msgspec.Struct, frozen=True, tag=True):
    """Something the user should know, in one sentence: turns dropped from the context, say."""

    id: int | None
    text: str


class WidthNoise(msgspec.Struct, frozen=True, tag=True):
    """How far logits of wider passes lie from those of single tokens, over a sample text: the largest difference at
    all, and the root mean square of each position's largest."""

    max_difference: float
    rms_difference: float
    identical_text_expected: bool


class NearTie(msgspec.Struct, frozen=True, tag=True):
    """How close the choice between two tokens was."""

    lead: float | None
    """By how much, in logits, the first one leads in a pass of one token; None where sampling cuts one of them off."""
    shift: float
    """How far wider passes move that lead."""
    turns: bool
    """Whether some widths choose the other token, or cut one off that others leave in play."""

    @property
    def decided_by_rounding(self) -> bool:
        """Whether rounding at this place explains that answers part here."""
        return self.turns or (self.lead is not None and abs(self.lead) <= 3 * self.shift)


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A request could not be done, in one clear sentence with what to do next."""

    text: str
    id: int | None = None


FromEngine = Progress | Loaded | Prefilling | Chunk | Done | Notice | WidthNoise | NearTie | Failed
