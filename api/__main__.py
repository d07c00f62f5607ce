"""`python -m dq`: the command line, where its script is not on the path."""

from dq.cli.main import main

main()
