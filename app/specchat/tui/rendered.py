"""An answer's text as items of the transcript: thoughts, stretches of prose, blocks of code."""

from typing import TypeVar

from specchat.thinking import Thinking
from specchat.tui.segments import Code, CodeEnd, CodeStart, Cut, Prose, Segmenter, Step
from specchat.tui.widgets.code import CodeBlock
from specchat.tui.widgets.item import Item
from specchat.tui.widgets.stretch import Stretch
from specchat.tui.widgets.thought import Thought

Kind = TypeVar("Kind", Stretch, CodeBlock)


class Rendered:
    """Grows at its end, by text cut anywhere."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.thought: Thought | None = None
        self.characters = 0
        """How much text it was fed."""
        self.over = False
        """Nothing more comes."""
        self._thinking = Thinking()
        self._segmenter = Segmenter()
        self._open: Stretch | CodeBlock | None = None

    def feed(self, text: str) -> list[Item]:
        """Takes more text; returns the items that changed."""
        self.characters += len(text)
        thought, rest = self._thinking.feed(text)
        return self._think(thought) + self._take(list(self._segmenter.feed(rest)))

    def end(self) -> list[Item]:
        """Closes what is open, once no more text comes."""
        self.over = True
        thought, rest = self._thinking.end()
        changed = self._think(thought)
        if self.thought:
            self.thought.closed = True
        return changed + self._take([*self._segmenter.feed(rest), *self._segmenter.end(), Cut(tight=False)])

    def _think(self, text: str) -> list[Item]:
        if self.thought is None:
            if not text.strip():
                return []
            self.thought = Thought()
            self.items.append(self.thought)
        elif not text and self.thought.closed:
            return []
        self.thought.add(text)
        self.thought.closed = self._thinking.over
        return [self.thought]

    def _take(self, steps: list[Step]) -> list[Item]:
        changed: list[Item] = []
        for step in steps:
            item = self._step(step)
            if item and (not changed or changed[-1] is not item):
                changed.append(item)
        return changed

    def _step(self, step: Step) -> Item | None:
        item = self._open
        match step, item:
            case Prose(text), Stretch():
                item.add(text)
            case Prose(text), _ if text.strip():
                item = self._begin(Stretch())
                item.add(text)
            case Code(text), CodeBlock():
                item.add(text)
            case CodeStart(language), _:
                item = self._begin(CodeBlock(language))
            case Cut(tight), Stretch():
                item.close(tight)
                self._open = None
            case CodeEnd(), CodeBlock():
                item.close()
                self._open = None
        return item

    def _begin(self, item: Kind) -> Kind:
        self._open = item
        self.items.append(item)
        return item
