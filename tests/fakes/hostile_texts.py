"""Sixty texts that are programs to somebody, and the canaries that tell whether any of them was run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from fakes.canary import Canary

VARIABLE = "DQ_CANARY"
SECRET = "secret-of-the-operator-7319"
TABLE = "canary"


@dataclass(frozen=True)
class Canaries:
    """A variable to leak, a table to drop, a file to read, one to create, and a socket to contact."""

    folder: Path
    socket: Canary

    @property
    def readable(self) -> Path:
        return self.folder / "readable.txt"

    @property
    def creatable(self) -> Path:
        return self.folder / "created"

    def environment(self) -> dict[str, str]:
        """The process's own variables, with the secret among them."""
        return {**os.environ, VARIABLE: SECRET}

    def prepare(self) -> None:
        self.readable.write_text(SECRET)

    def disturbed(self, *outputs: str | bytes) -> list[str]:
        """Which of them were touched, the secret in any of the outputs among them."""
        found = ["a file was created"] if self.creatable.exists() else []
        found += [f"the socket heard {one!r}" for one in self.socket.heard]
        whole = [one.decode(errors="replace") if isinstance(one, bytes) else one for one in outputs]
        # Shown with what stands around it, so that a failure names the text.
        for one in whole:
            at = one.find(SECRET)
            if at >= 0:
                found.append(f"the secret is in the output: …{one[max(at - 200, 0) : at + 60]!r}")
        return found


def hostile_texts(canaries: Canaries) -> dict[str, str]:
    """By name. Each has one line, so that it can stand in a name and in the path of a file too."""
    made, read, port = canaries.creatable, canaries.readable, canaries.socket.port
    url = f"http://127.0.0.1:{port}/x"
    run = f"__import__('os').system('touch {made}')"
    texts = {
        # dbt
        "jinja variable": "{{ env_var('DQ_CANARY') }}",
        "jinja query": "{{ run_query('drop table if exists main.canary') }}",
        "jinja statement": "{% do run_query('drop table if exists main.canary') %}",
        "jinja set": "{% set x = env_var('DQ_CANARY') %}{{ x }}",
        "jinja without blanks": "{{env_var('DQ_CANARY')}}",
        "jinja stripped": "{{- env_var('DQ_CANARY') -}}",
        "jinja nested": "{{ '{{' }} env_var('DQ_CANARY') {{ '}}' }}",
        "jinja in a literal": "{{ \"{{ env_var('DQ_CANARY') }}\" }}",
        "jinja after a brace": "{{{ env_var('DQ_CANARY') }}}",
        "jinja comment": "{# x #}{{ env_var('DQ_CANARY') }}",
        "jinja raw ended": "{% endraw %}{{ env_var('DQ_CANARY') }}{% raw %}",
        "jinja line comment": "## {{ env_var('DQ_CANARY') }}",
        "jinja argument ended": "x')) }}{{ env_var('DQ_CANARY') }}{{ source('a', 'b",
        "jinja doc": "{{ doc('x') }}",
        # Spark
        "spark variable": "${env:DQ_CANARY}",
        "spark property": "${system:user.home} ${spark:spark.app.id}",
        "spark conf": "${hiveconf:x} ${hivevar:y} ${x}",
        "spark variable cut": "$${env:DQ_CANARY}}",
        "spark escaped": "\\${env:DQ_CANARY} \\u0024{env:DQ_CANARY}",
        "spark code": "x', reflect('java.lang.System', 'getenv', 'DQ_CANARY')) --",
        "spark file": f"x` USING text LOCATION '{read}' --",
        # SQL
        "sql quote": "'; DROP TABLE canary; --",
        "sql doubled quote": "''; DROP TABLE canary; --",
        "sql escaped quote": "\\'; DROP TABLE canary; --",
        "sql backslash": "x\\",
        "sql double quote": '"; DROP TABLE canary; --',
        "sql back quote": "`; DROP TABLE canary; --",
        "sql statement": "x; DROP TABLE canary; --",
        "sql comment": "x */ ; DROP TABLE canary; /*",
        "sql parenthesis": "x) ; DROP TABLE canary; --",
        "sql true": "x' OR '1'='1",
        "sql type": "int>) ; DROP TABLE canary; --",
        "sql copy": f"'; COPY (SELECT 1) TO '{made}'; --",
        # Python
        "python quote": f'x"); {run}; ("',
        "python single quote": f"x'); {run}; ('",
        "python triple quote": f'"""; {run}; """',
        "python line": f"x\\n{run}",
        "python f-string": f"{{{run}}}",
        "python escape": f'\\"); {run}; (\\"',
        # Shells
        "shell command": f"$(touch {made})",
        "shell back quotes": f"`touch {made}`",
        "shell statement": f"x; touch {made};",
        "shell quote": f"'; touch {made}; '",
        "shell double quote": f'"; touch {made}; "',
        "shell redirect": f"x > {made}",
        "shell pipe": f"x | touch {made} &",
        "shell option": "--config=/etc/passwd",
        "shell short option": "-o",
        # Browsers and readers of Markdown
        "html script": f"<script>fetch('{url}')</script>",
        "html picture": f"<img src={url} onerror=\"fetch('{url}')\">",
        "html attribute": f'" onmouseover="fetch(\'{url}\')" x="',
        "html link": "javascript:fetch('" + url + "')",
        "html host": "https://user:pw@127.0.0.1\\@good.example/",
        "markdown picture": f"![x]({url})",
        "markdown link": f"[x](javascript:fetch('{url}'))",
        # Chat, CI, spreadsheets, YAML
        "slack mention": "<!channel> <@U0000000> <https://evil.example|good.example>",
        "workflow command": "::error title=x::pwned",
        "spreadsheet": "=cmd|' /C calc'!A0",
        "yaml tag": f"!!python/object/apply:os.system ['touch {made}']",
        "yaml end": "x: {y: 1} # &a *a",
    }
    assert len(texts) == 60, len(texts)
    return texts
