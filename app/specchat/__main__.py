"""`python -m specchat`, for where the folder of installed commands is not on the PATH."""

from specchat.cli import main

main()
