"""`--html FILE`: the report as one file for a browser, which needs neither a network nor a server.

The page's code and style are made from web/ when homing is built. The results stand in it as one line of
JSON, the same as `--json` writes; what the views need beside them follows (views.py).
"""

from __future__ import annotations

import html
import json
import os
from typing import Any

from homing.files import read_text
from homing.installation import find_page
from homing.outputs import output
from homing.record_format import printable
from homing.report.html.arrays import Arrays, packed
from homing.report.html.views import views
from homing.report.json import to_json
from homing.report.results import Results

#: Longer JSON is compressed: a page is to be opened over a network file system.
_MOST_PLAIN = 1 << 19
#: Of the page's own code and style.
_MOST_ASSET = 4 << 20

# The page loads nothing: what a name in a record might smuggle in has nowhere to go.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="homing {version}">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript>The script in this page draws it. The same numbers: homing report --json FILE.</noscript>
<div id="app"></div>
{data}
<script>{script}</script>
</body>
</html>
"""


def write_html(results: Results, path: str) -> None:
    """Write the page. UserError where that is not possible."""
    text = page(results)
    with output(path, "page") as file:
        file.write(text)


def page(results: Results) -> str:
    """The whole page."""
    folder = find_page()
    script = read_text(os.path.join(folder, "report.js"), _MOST_ASSET)
    style = read_text(os.path.join(folder, "report.css"), _MOST_ASSET)
    run = to_json(results)
    arrays = Arrays()
    more = views(results, arrays)
    data = [_json("run", run), _json("views", more)]
    data.append(f'<script type="application/octet-stream" id="arrays">{arrays.packed()}</script>')
    return _PAGE.format(
        version=html.escape(run["homing"]),
        policy=_POLICY,
        title=html.escape(_title(results)),
        style=style.replace("</style", "<\\/style"),
        data="\n".join(data),
        script=script.replace("</script", "<\\/script"),
    )


def _title(results: Results) -> str:
    programs = [one.record.program for one in results.processes] or (results.command or [])[:1]
    return f"{printable(os.path.basename(programs[0])) if programs else 'no process'} - homing"


def _json(name: str, value: Any) -> str:
    """A value as a script of one line that no browser runs."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    if len(text) > _MOST_PLAIN:
        body = packed(text.encode())
        return f'<script type="application/json" id="{name}" data-encoding="gzip">{body}</script>'
    # Nothing in a name may end the script.
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f'<script type="application/json" id="{name}">{text}</script>'
