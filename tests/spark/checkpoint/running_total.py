"""A stateful processor in a module of its own: it is pickled by name into Python workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle


class RunningTotal(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._totals = handle.getValueState("totals", "total long, rows long")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timer_values: Any
    ) -> Iterator[pd.DataFrame]:
        total, count = self._totals.get() if self._totals.exists() else (0, 0)
        for frame in rows:
            total += int(frame["amount"].sum())
            count += len(frame)
        self._totals.update((total, count))
        yield pd.DataFrame({"key": [key[0]], "total": [total], "rows": [count]})

    def close(self) -> None:
        pass
