"""What waits for the engine: prompts on their way to an answer, and loads, in the order in which their turns come."""

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from specchat.chat import new_id
from specengine.protocol import Load


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A prompt on its way to an answer; compared by identity."""

    prompt: str
    shown: str
    turn: int = field(default_factory=new_id)
    """Id of the turn that it becomes, or whose answer goes on."""
    beside: int | None = None
    """The turn whose place it takes: it begins a branch there."""
    seed: int | None = None
    """A seed of its own."""
    goes_on: bool = False
    """The last answer is to go on where it was cut."""
    asked_s: float = field(default_factory=time.time)


class Jobs:
    """Prompts wait for the first load."""

    def __init__(self) -> None:
        self.open = False
        """Whether there was a load yet."""
        self._jobs: deque[Load | Asked] = deque()
        self._more = asyncio.Event()

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def prompts(self) -> list[Asked]:
        return [job for job in self._jobs if isinstance(job, Asked)]

    async def next(self) -> Load | Asked:
        """Takes the one whose turn it is, once there is one."""
        while not (self.open and self._jobs):
            self._more.clear()
            await self._more.wait()
        return self._jobs.popleft()

    def load(self, load: Load) -> None:
        """The first load comes before prompts that were waiting for it."""
        if self.open:
            self._jobs.append(load)
        else:
            self._jobs.appendleft(load)
        self.open = True
        self._more.set()

    def ask(self, asked: Asked) -> None:
        """A prompt that takes the place of another comes before all that waits."""
        if asked.beside is None:
            self._jobs.append(asked)
        else:
            self._jobs.appendleft(asked)
        self._more.set()

    def withdraw(self) -> Asked | None:
        """Takes the newest prompt back."""
        newest = next(iter(reversed(self.prompts)), None)
        if newest is not None:
            self._jobs.remove(newest)
        return newest

    def clear(self) -> None:
        """Takes all prompts back."""
        for asked in self.prompts:
            self._jobs.remove(asked)
