"""Configurations of servers with replicas, and replicas in this process."""

from __future__ import annotations

import json
from pathlib import Path

from pie.client import Client
from pie.config import Config, Flags, load

PROGRAM = """
from inferlet import Context, Model, Sampler


async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append(input["prompt"])
    tokens = []
    while len(tokens) < input["n"]:
        more, seed = input["n"] - len(tokens), input["seed"] + len(tokens)
        tokens += await ctx.generate(Sampler.top_p(0.9, 0.95), max_tokens=more, seed=seed, stop=[]).collect_tokens()
    return tokens
"""
"""Draws `n` tokens behind a prompt, whatever ends a text."""


def config(folder: Path, *, n_replicas: int = 2, model: str = 'driver = "dummy"', **server: object) -> Config:
    """A server of that model with its data in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} = {json.dumps(value)}" for name, value in ({"port": 0, "replicas": n_replicas} | server).items()]
    text = f"[engine]\ndata_dir = {json.dumps(str(folder / 'data'))}\n[server]\n" + "\n".join(lines) + f"\n[model.pie-tiny]\n{model}\n"
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return load(Flags(file=path), variables={})


async def tokens(client: Client, folder: Path, n: int, seed: int) -> list[int]:
    """What a program draws."""
    path = folder / "drawing.py"
    path.write_text(PROGRAM, encoding="utf-8")
    process = await client.launch(await client.upload(path), input={"prompt": [5, 6, seed], "n": n, "seed": seed})
    drawn: list[int] = await process.result()
    return drawn
