"""What a name in a JVM stands for is asked once, where PySpark asks anew with each query.

A name such as `PythonUtils` is looked for in twenty packages of three hundred jars: a twentieth of the CPU of
small queries. What it was found to be stays so for as long as the JVM lives.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView


@cache
def remember_names() -> None:
    """From here on, for each JVM of this process."""
    for view, kept in (
        (JVMView, (JavaClass, JavaPackage)),
        (JavaPackage, (JavaClass, JavaPackage)),
        (JavaClass, (JavaClass, JavaMember)),
    ):
        _remember(view, kept)


def _remember(view: Any, kept: tuple[type, ...]) -> None:
    asked = view.__getattr__

    def once(self: Any, name: str) -> Any:
        found = asked(self, name)
        # The value of a field may be another one the next time.
        if isinstance(found, kept):
            self.__dict__[name] = found
        return found

    view.__getattr__ = once
