"""What the user does to the turns of a chat: have them answered again, go on, edited, copied, and switch branches."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.events import Paste

from specchat.branches import siblings
from specchat.chat import Turn
from specchat.tui.code_blocks import code_blocks
from specchat.tui.commands import CommandError

if TYPE_CHECKING:
    from specchat.tui.screens.talk import TalkScreen


class Turns:
    """Acts for a chat screen. Each act raises CommandError, in one sentence, where it can't be done."""

    def __init__(self, screen: "TalkScreen") -> None:
        self._screen = screen
        self.editing: int | None = None
        """The turn whose place the next prompt takes."""
        self.title = ""
        """What the prompt says of that."""
        self._draft = ""
        """What was being typed before that."""

    def retry(self, id: int | None = None) -> None:
        """Has a prompt answered again with another seed."""
        session = self._screen.session
        if session.retry(id) is None:
            raise CommandError("There is no prompt to answer again yet.")
        if session.settings.sampling.greedy:
            self._screen.notify("At temperature 0 the answer will be the same; /settings changes that.")

    def go_on(self) -> None:
        """Has the last answer go on where it was cut."""
        turn = self._last()
        if turn.answer and turn.answer.ending in ("end", "stop"):
            raise CommandError("The last answer is complete; /retry has it answered again.")
        if self._screen.session.go_on() is None:
            raise CommandError("There is no answer to go on with yet.")

    def bring_back(self, unanswered: Sequence[Turn]) -> None:
        """Puts prompts that were never answered into the prompt, to be sent again."""
        if len(unanswered) == 1:
            self._show(unanswered[0])
        elif unanswered:
            self._screen.prompt.empty()
            self._screen.prompt.post_message(Paste("\n\n".join(turn.prompt for turn in unanswered)))

    def edit(self, number: str = "") -> None:
        """Puts an earlier prompt, the last one by default, into the prompt; sent from there, it begins a branch."""
        turns = self._turns()
        if number and not (number.isdecimal() and 1 <= int(number) <= len(turns)):
            raise CommandError(f"/edit takes the number of a prompt in this chat, 1 to {len(turns)}, or nothing.")
        self.edit_turn(turns[int(number) - 1 if number else -1].id)

    def edit_turn(self, id: int) -> None:
        turns = self._turns()
        at = next((index for index, turn in enumerate(turns) if turn.id == id), None)
        if at is None:
            raise CommandError("This prompt is not part of the chat any more.")
        if self.editing is None:
            self._draft = self._screen.prompt.text
        self.editing = id
        self._show(turns[at])
        self.title = f"editing prompt {at + 1} of {len(turns)} · esc leaves it"
        self._screen.mark_prompt()

    def leave_editing(self) -> bool:
        """Leaves the earlier prompt as it is, and brings back what was being typed; false if none was edited."""
        if self.editing is None:
            return False
        self._end_editing()
        self._screen.prompt.recall(self._draft, {})
        return True

    def take_edited(self) -> int | None:
        """The turn whose place the prompt takes that is being sent."""
        id = self.editing
        if id is not None:
            self._end_editing()
        return id

    def switch(self, id: int, by: int, choose: bool = False) -> None:
        """Shows the branch beside that of a turn: the next one, or the one before. Its first question may be chosen."""
        session = self._screen.session
        if session.answering:
            raise CommandError("An answer is being written; stop it (esc) before you switch branches.")
        turn = next((turn for turn in session.conversation.turns if turn.id == id), None)
        beside = siblings(session.conversation, turn) if turn else ()
        if turn is None or len(beside) < 2:
            raise CommandError("There is no other branch here; /edit and /retry begin one.")
        at = [other.id for other in beside].index(turn.id)
        other = beside[(at + by) % len(beside)].id
        session.show_branch(other)
        self._screen.view.show_soon(other if choose else None)

    def branch(self, argument: str) -> None:
        """Shows another branch at the last place where the chat has several."""
        session = self._screen.session
        steps = {"": 1, "next": 1, "back": -1}
        if argument not in steps:
            raise CommandError("/branch takes next or back, or nothing for the next one.")
        conversation = session.conversation
        forks = [turn.id for turn in conversation.turns if len(siblings(conversation, turn)) > 1]
        if not forks:
            raise CommandError("This chat has one branch only; /edit and /retry begin another.")
        self.switch(forks[-1], steps[argument])

    def copy(self, argument: str = "") -> None:
        """Copies the last answer, its N-th block of code, or the last prompt."""
        turn = self._last()
        word, _, number = argument.partition(" ")
        text = turn.answer.text if turn.answer else ""
        if word == "prompt" and not number:
            text = turn.prompt
        elif word == "code" and (not number or number.isdecimal()):
            blocks = code_blocks(text)
            at = int(number) - 1 if number else len(blocks) - 1
            if not 0 <= at < len(blocks):
                raise CommandError(_no_block(len(blocks)))
            text = blocks[at].text.removesuffix("\n")
        elif argument:
            raise CommandError("/copy takes code, code N or prompt; without them it copies the last answer.")
        if not text:
            raise CommandError("There is no answer to copy yet.")
        self._screen.copy(text)

    def _turns(self) -> tuple[Turn, ...]:
        turns = self._screen.session.conversation.turns
        if not turns:
            raise CommandError("There is nothing in this chat yet.")
        return turns

    def _last(self) -> Turn:
        return self._turns()[-1]

    def _show(self, turn: Turn) -> None:
        """Shows its prompt as it was typed, pastes as chips, where that is still known."""
        prompt = self._screen.prompt
        prompt.empty()
        prompt.bring_back(turn.shown)
        if not prompt.text:
            prompt.post_message(Paste(turn.prompt))
        prompt.focus()

    def _end_editing(self) -> None:
        self.editing, self.title = None, ""
        self._screen.mark_prompt()


def _no_block(count: int) -> str:
    if not count:
        return "The last answer has no block of code; /copy copies all of it."
    return f"The last answer has {count} block{'s' * (count != 1)} of code; /copy code N takes one of them."
