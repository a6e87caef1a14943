"""What each setting is for, and what holds where it is not made: the words of `specchat config`."""

from dataclasses import dataclass
from typing import Final

from specengine.settings import Sampling

_SAMPLING: Final = Sampling()


@dataclass(frozen=True, slots=True)
class Setting:
    purpose: str
    example: str
    """A value as TOML writes it."""
    default: str
    """What holds if it is not set, in words."""


def _literal(purpose: str, value: object) -> Setting:
    """A setting whose default is a value of its own kind."""
    text = f'"{value}"' if isinstance(value, str) else str(value).lower()
    return Setting(purpose, text, str(value).lower())


SETTINGS: Final[dict[str, Setting]] = {
    "model": Setting(
        "A model of `specchat models list`, or the path of a .gguf file",
        '"qwen2.5-coder-1.5b"',
        "the largest that is here and fits",
    ),
    "draft": Setting(
        "The draft model, in the same way; self for some of the model's own layers, none for none",
        '"none"',
        "the catalogue's choice",
    ),
    "system": Setting("The system prompt", '"Answer briefly."', "none"),
    "spec": _literal("Speculation: auto (where it pays), on, or off", "auto"),
    "lookup": _literal("Whether drafts come from prompt lookup", True),
    "gamma": Setting(
        "A fixed draft length in tokens, up to 127; 0 decodes plainly", "5", "the engine's choice each round"
    ),
    "temperature": _literal("0 always takes the likeliest token; higher is more varied", _SAMPLING.temperature),
    "top_k": _literal("Keep the k likeliest tokens; 0 keeps all", _SAMPLING.top_k),
    "top_p": _literal("Keep the likeliest tokens that reach p together; 1 keeps all", _SAMPLING.top_p),
    "min_p": _literal("Keep tokens at least p times as likely as the likeliest; 0 keeps all", _SAMPLING.min_p),
    "repetition_penalty": _literal(
        "Divide the logits of tokens seen before by this much; 1 does nothing", _SAMPLING.repetition_penalty
    ),
    "frequency_penalty": _literal("Subtract this much for each earlier occurrence", _SAMPLING.frequency_penalty),
    "presence_penalty": _literal("Subtract this much from every token that occurred", _SAMPLING.presence_penalty),
    "penalty_window": _literal("How many of the last tokens the penalties count", _SAMPLING.penalty_window),
    "seed": Setting("The same seed gives the same text", "0", "random at each start"),
    "coupling": _literal(
        "How drafts are verified: shared noise (the same text with and without drafts), or maximal", _SAMPLING.coupling
    ),
    "max_tokens": Setting("Most tokens of one answer", "2048", "what the context leaves"),
    "stop": Setting("Strings that end an answer", '["END"]', "none"),
    "ctx": Setting("Context size in tokens", "8192", "the model's own, 8192 at most"),
    "engine": _literal("What runs the models: auto, torch or llamacpp", "auto"),
    "device": _literal("Where they run: auto, cuda or cpu", "auto"),
    "threads": Setting("CPU threads", "4", "the physical cores"),
    "gpu_layers": Setting("Layers to run on a GPU", "0", "all, where llama.cpp was built for a GPU"),
    "exact": _literal("Identical text with and without speculation where the file allows it, at some cost", False),
    "offline": _literal("Use no network", False),
    "theme": _literal("Colours of the chat; ansi takes the terminal's own", "dark"),
    "mouse": _literal("Take the mouse; false leaves it to the terminal, which then selects text by itself", True),
    "animations": _literal("Move things smoothly", True),
    "keymap": Setting(
        "Keys of the chat by action; `specchat config keys` names them all",
        '{ "chat.new" = "f9" }',
        "the built-in keys",
    ),
    "paste_lines": _literal("Show a paste of so many lines as a chip; 0 shows none as one", 8),
    "prompt_history": _literal("Keep prompts for later starts", True),
    "save": _literal("Keep chats on the disk", True),
}
"""By name, in the order in which they are shown."""


def template() -> str:
    """A config.toml that sets nothing and shows everything."""
    lines = ["# Settings of specchat. Take the # away from what you want to set.", ""]
    for name, setting in SETTINGS.items():
        lines += [f"# {setting.purpose}. By default: {setting.default}.", f"# {name} = {setting.example}", ""]
    return "\n".join(lines)
