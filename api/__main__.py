"""`python -P -m dq` and `spark-submit __main__.py`: the command line, where its script is not on the path.

Without `-P`, Python looks for `dq` itself in the working folder first, which may be a stranger's checkout.
"""

import os
import sys

if sys.path[0] in ("", os.getcwd(), os.path.dirname(__file__)):  # noqa: PTH109, PTH120  # pathlib could be a module of that folder
    # What is loaded from now on, checks of other packages among it, is looked for elsewhere.
    del sys.path[0]

# A process that this one starts may read this file again, under another name.
if __name__ == "__main__":
    from dq.cli.main import main

    main()
