"""A process that writes chats until it has done so or is killed: `python writing_process.py PATH CHAT TURNS WORDS`.

It says "asked N" and "said WORD" once that was handed to the recorder.
"""

import sys
import time
from pathlib import Path

from specchat.chat import Answer, Turn
from specchat.store import recorder
from specchat.store.chats import Header

path, chat, turns, words = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
recorder.TEXT_S = 0.02  # type: ignore[misc]
recording = recorder.Recorder(path, lambda sentence: print("SAID", sentence, flush=True))
header = Header(chat, f"Chat {chat}", time.time(), model="tiny-1b")
parent = None
for number in range(turns):
    begun = Answer("", "failed", None, None, "tiny-1b")
    turn = Turn(f"prompt {number}", f"prompt {number}", begun, parent=parent)
    recording.prompt(header, turn)
    print("asked", number, flush=True)
    text = ""
    for word in range(words):
        text += f"word{word} "
        recording.text(turn.id, f"word{word} ")
        print("said", word, flush=True)
        if words > 1000:
            time.sleep(0.001)
    recording.answer(turn.id, Answer(text, "end", (1, 2), None, "tiny-1b", ended_s=time.time()))
    parent = turn.id
recording.close()
print("done", flush=True)
