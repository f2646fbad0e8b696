"""What probes read of a row of logits, in plain double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Row = npt.NDArray[np.float32]
MAX_PROBED_TOKENS = 65_536


class InvalidProbeError(Exception):
    """A probe with a parameter that is out of its range; holds the code."""


def check(probe: dict[str, Any], vocab_size: int) -> None:
    """Refuses what cannot be read."""
    tokens = [probe["token"]] if probe["kind"] == "logprob" else probe.get("tokens", [])
    if probe["kind"] == "distribution" and not (probe["temperature"] > 0 and 0 <= probe["k"] <= vocab_size):
        raise InvalidProbeError("invalid-probe")
    if probe["kind"] == "logprobs" and not 0 < len(tokens) <= MAX_PROBED_TOKENS:
        raise InvalidProbeError("invalid-probe")
    if any(token >= vocab_size for token in tokens):
        raise InvalidProbeError("invalid-token")


def probabilities(row: Row, temperature: float = 1.0) -> npt.NDArray[np.float64]:
    """The softmax of a row after a temperature."""
    scaled = row.astype(np.float64) / float(np.float32(temperature))
    parts = np.exp(scaled - scaled.max())
    return parts / parts.sum()


def read(row: Row, probe: dict[str, Any]) -> dict[str, Any]:
    """What the accessors give of a probe: the one of its kind."""
    match probe["kind"]:
        case "logits":
            return {"logits": summed([float(value) for value in row])}
        case "distribution":
            shares = probabilities(row, probe["temperature"])
            order = (
                range(len(row)) if probe["k"] == 0 else sorted(range(len(row)), key=lambda token: (-float(row[token]), token))[: probe["k"]]
            )
            tokens = [int(token) for token in order]
            return {"distribution": summarized(tokens, [float(shares[token]) for token in tokens])}
        case "logprob":
            return {"logprobs": [float(np.log(probabilities(row)[probe["token"]]))]}
        case "logprobs":
            logs = np.log(probabilities(row))
            return {"logprobs": [float(logs[token]) for token in probe["tokens"]]}
        case "entropy":
            shares = probabilities(row)
            return {"entropy": float(-(shares * np.log(shares)).sum())}
    raise ValueError(probe)


def summed(values: list[float]) -> list[float]:
    """How many values there are, the first, the last, and their sum, which is exact for logits of the dummy driver."""
    return [len(values), values[0], values[-1], float(np.sum(np.array(values, dtype=np.float64)))]


def summarized(tokens: list[int], values: list[float]) -> list[Any]:
    """A short distribution as it is; of a long one what `summed` says, of both lists."""
    return [tokens, values] if len(tokens) <= 8 else [summed([float(token) for token in tokens]), summed(values)]
