"""For all tiers: a test run that does not come to its end has failed."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

_end_process = os._exit
_END_OF_A_CUT_RUN = 70


def pytest_configure(config: pytest.Config) -> None:
    """Drivers and lookouts end their process by os._exit. Called here, by a thread that a test has left, it
    would end the run with whatever code the job deserves: with 0, all would seem well."""
    own = os.getpid()

    def refuse(status: int) -> NoReturn:
        if os.getpid() == own and not status:
            config.pluginmanager.getplugin("capturemanager").suspend_global_capture(in_=True)
            os.write(2, b"os._exit(0) in the middle of a test run\n")
            status = _END_OF_A_CUT_RUN
        _end_process(status)

    os._exit = refuse
    config.add_cleanup(lambda: setattr(os, "_exit", _end_process))
