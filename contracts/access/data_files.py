"""Names of a table's files and folders that hold rows: Spark's rule, for every reader of a lake.

Source: HadoopFSUtils.shouldFilterOutPathName and PartitioningAwareFileIndex.isDataPath of Spark 3.5 and 4.0.
Hive and Trino pass over the same names that begin with `_` or a dot.
"""

from __future__ import annotations


def is_data_name(name: str) -> bool:
    """Return whether a reader takes rows from a file of this name, or enters such a folder.

    Names that begin with a dot are hidden, and so are those that begin with `_`, unless they hold a `=`
    (`_hour=7`). `._COPYING_` ends the name of an upload by Hadoop that has not finished.
    """
    hidden = name.startswith(".") or (name.startswith("_") and "=" not in name)
    return not hidden and not is_unfinished(name)


def is_unfinished(name: str) -> bool:
    """Return whether a file of this name is an upload by Hadoop that has not finished."""
    return name.endswith("._COPYING_")


def is_data_path(path: str) -> bool:
    """Return whether a reader of a table takes rows at this path, which is relative to its folder."""
    return all(is_data_name(step) for step in path.split("/"))
