"""`specchat paths`: where everything is kept."""

import json
import sys
from pathlib import Path
from typing import Final

import click

from specchat import paths
from specchat.folding import columns
from specchat.table import Column, table

_COLUMNS: Final = (Column("place"), Column("path", least=20))


@click.command(name="paths")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def paths_command(as_json: bool) -> None:
    """Shows where specchat keeps its files.

    SPECCHAT_HOME moves everything, SPECCHAT_MODELS the model files alone.
    """
    places = {name: str(path) for name, path in everything().items()}
    if as_json:
        click.echo(json.dumps(places, indent=2))
        return
    for line in table(_COLUMNS, list(places.items()), columns(sys.stdout)):
        click.echo(line)


def everything() -> dict[str, Path]:
    """Name of a place → where it is."""
    return {
        "config": paths.config_file(),
        "data": paths.data_dir(),
        "chats": paths.chats_file(),
        "models": paths.models_dir(),
        "state": paths.state_dir(),
        "cache": paths.cache_dir(),
        "log": paths.log_file(),
        "history": paths.history_file(),
        "costs": paths.costs_file(),
    }
