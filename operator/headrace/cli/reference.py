"""docs/reference/cli.md, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

_HEAD = """<!-- Generated from operator/headrace/cli by `make generate`. Edit the help texts there. -->
# Command line

`headrace` works on this machine: see [getting started](../getting-started.md). `kubectl streamjob` works on a
cluster: see [how to install and use it](../how-to/kubectl-streamjob.md).
"""

# Those of every command of the plugin are told once.
_EVERYWHERE = ("namespace", "context", "kubeconfig")


def cli_page() -> str:
    """All commands with their arguments, options and exit codes."""
    from headrace.cli.kubectl import main as plugin  # noqa: PLC0415 - a page is made once
    from headrace.cli.main import main as headrace  # noqa: PLC0415

    parts = [_HEAD]
    for program, group in (("kubectl streamjob", plugin), ("headrace", headrace)):
        parts.append(f"## {program}\n\n{_text(group)}\n")
        if group is plugin:
            common = [one for one in plugin.commands["status"].params if one.name in _EVERYWHERE]
            parts.append("Every command but `validate` takes these as well:\n\n" + _options(common))
        parts += _commands(program, group)
    return "\n".join(parts).rstrip() + "\n"


def _commands(program: str, group: click.Group) -> Iterator[str]:
    seen: set[int] = set()
    for name, command in group.commands.items():
        if id(command) in seen:
            continue  # another name of the same
        seen.add(id(command))
        if isinstance(command, click.Group):
            yield from _commands(f"{program} {name}", command)
        else:
            others = [other for other, same in group.commands.items() if same is command and other != name]
            yield _section(f"{program} {name}", command, others)


def _section(usage: str, command: click.Command, others: list[str]) -> str:
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    own = [one for one in options if one.name not in _EVERYWHERE]
    names = " ".join(_argument(one) for one in arguments)
    lines = [
        f"### {usage}",
        "",
        "```sh",
        f"{usage} {names}".rstrip() + (" [options]" if options else ""),
        "```",
        "",
    ]
    lines += [_text(command), ""]
    lines += [f"Also: {', '.join(f'`{other}`' for other in others)}.", ""] if others else []
    lines += [_options(own)] if own else []
    return "\n".join(lines)


def _options(options: Sequence[click.Parameter]) -> str:
    rows = [f"| {_flags(one)} | {_meaning(one)} |" for one in options if isinstance(one, click.Option)]
    return "\n".join(("| Option | Meaning |", "|---|---|", *rows, ""))


def _argument(argument: click.Argument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    return name if argument.required else f"[{name}]"


def _flags(option: click.Option) -> str:
    value = "" if option.is_flag else f" {_value(option)}"
    return ", ".join(f"`{flag}{value}`" for flag in option.opts)


def _value(option: click.Option) -> str:
    match option.type:
        case click.Choice():
            return "\\|".join(map(str, option.type.choices))
        case click.Path():
            return "DIR" if not option.type.file_okay else "FILE"
        case click.types.IntParamType():
            return "N"
        case click.types.FloatParamType():
            return "X"
        case _:
            return "TEXT"


def _meaning(option: click.Option) -> str:
    parts = [option.help or ""]
    if option.required:
        parts.append("Required.")
    if option.multiple:
        parts.append("May be given several times.")
    if option.show_default and not option.is_flag:
        parts.append(f"Default: `{option.default}`.")
    return " ".join(filter(None, parts))


def _text(command: click.Command) -> str:
    """The help as it is written: paragraphs, unwrapped."""
    paragraphs = (command.help or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
