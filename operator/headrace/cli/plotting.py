"""Where the picture of a simulation goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])


def plot_option(*, default: str) -> Callable[[_F], _F]:
    return click.option(
        "--plot",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_svg_only,
        help=f"Where the picture goes: a file that ends in .svg. Default: {default}.",
    )


def _svg_only(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Text in a file that calls itself a PNG would open nowhere."""
    if path is not None and path.suffix.lower() != ".svg":
        raise click.BadParameter(
            f"{path.name}: the picture is SVG, which browsers and image tools open and convert: "
            f"write {path.with_suffix('.svg').name}"
        )
    return path
