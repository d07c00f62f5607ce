"""Entry point of `python -P -m dq` and `spark-submit __main__.py`, for when the `dq` script is not on the
path.

Without `-P`, Python looks for `dq` itself in the working folder first, which may be an untrusted checkout.
"""

import os
import sys

# pathlib could be a module of that folder
if sys.path[0] in ("", os.getcwd(), os.path.dirname(__file__)):  # noqa: PTH109, PTH120
    # Later imports, including plug-in checks, must not come from that folder.
    del sys.path[0]

# Child processes (multiprocessing) import this file again under another name.
if __name__ == "__main__":
    from dq.cli.main import main

    main()
