"""How `headrace dev` looks: a calm picture in a terminal, plain lines elsewhere, JSON for programs."""

from __future__ import annotations

import sys

from headrace.cli.views.lines import JsonView, PlainView
from headrace.local.view import View


def choose_view(*, json_lines: bool) -> View:
    if json_lines:
        return JsonView(sys.stdout)
    if sys.stdout.isatty():
        from headrace.cli.views.live import LiveView  # noqa: PLC0415 - rich costs start-up time

        return LiveView()
    return PlainView(sys.stdout)
