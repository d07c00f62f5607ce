"""The daemon of Spark's Python workers in the tests: they do not read pyspark.zip anew before each task.

Spark asks Python then to look at its paths again, and before 3.13 the importer of archives reads the whole
directory at once: more than the task of a test takes.
"""

import gc
from zipimport import zipimporter

from pyspark import daemon

if __name__ == "__main__":
    zipimporter.invalidate_caches = lambda _self: None  # type: ignore[method-assign]
    # What the workers have from here need not be looked through after each task either.
    gc.freeze()
    daemon.manager()
