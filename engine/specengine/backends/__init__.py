"""The runtimes, one LanguageModel each."""

import os
from typing import Final

# llama.cpp's threads meet at a barrier some hundred times a token. GNU OpenMP lets them spin there for milliseconds,
# which starves them of each other as soon as another program wants a core: beside two busy loops on two cores SmolLM2
# wrote 13 tokens/s, and 30 with a short spin; beside heavier work 0.1 to 6. No spin at all costs a quiet machine up to
# two thirds of its speed, this one about 1 %. Read by the OpenMP library when it is loaded, so it is set before any
# runtime is; a user's own setting wins.
SPIN: Final = "5000"
os.environ.setdefault("GOMP_SPINCOUNT", SPIN)
