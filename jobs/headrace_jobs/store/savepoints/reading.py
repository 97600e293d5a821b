"""Where Spark is at hand: it reads every state store of a copy, by its own data source for state."""

from __future__ import annotations

import json
from typing import Any


def read_state(spark: Any, query_url: str) -> dict[str, int]:
    """The number of entries in each state store of one query; raises what Spark raises if one cannot be read.

    `query_url` is the checkpoint of the query as Spark names it (s3a://…, file:///…).
    """
    found: dict[str, int] = {}
    # Loading a snapshot reports to a coordinator, which exists only where streams were asked for once.
    spark.streams.active  # noqa: B018
    operators = spark.read.format("state-metadata").load(query_url).collect()
    for row in operators:
        for name, options in _parts(row).items():
            reader = spark.read.format("statestore").option("operatorId", row["operatorId"])
            for key, value in options.items():
                reader = reader.option(key, value)
            found[f"{row['operatorId']}/{name}"] = reader.load(query_url).count()
    return found


def _parts(row: Any) -> dict[str, dict[str, str]]:
    """The options by which the parts of an operator's state are read: stores, or variables in one store."""
    properties = json.loads(row["operatorProperties"] or "{}")
    variables = [one["stateName"] for one in properties.get("stateVariables", ())]
    if variables:
        return {name: {"stateVarName": name} for name in variables}
    return {row["stateStoreName"]: {"storeName": row["stateStoreName"]}}
