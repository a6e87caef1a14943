"""The runtimes, one LanguageModel each."""

import os

# llama.cpp's threads meet at a barrier some hundred times a token. OpenMP lets them spin there, which starves them of
# each other as soon as another program wants a core: on a busy two-core machine 0.7 tokens/s instead of 31. Read by
# the OpenMP library when it is loaded, so it is set before any runtime is; a user's own setting wins.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
