"""`python -m closecall`: the same as the command `closecall`."""

from closecall.cli import main

main()
