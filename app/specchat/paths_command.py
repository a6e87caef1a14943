"""`specchat paths`: where everything is kept."""

import json
from pathlib import Path

import click

from specchat import paths


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
    for name, path in places.items():
        click.echo(f"{name:<8} {path}")


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
