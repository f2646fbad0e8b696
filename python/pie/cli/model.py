"""`pie model show`: what a model is, before it is run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pie.config import Flags, ModelConfig


_MAX_SHOWN_TENSORS = 4
_SAME_ANSWER = "the same answer every time"
_OTHER_ANSWER = "whose answers may depend on what else is in a batch"


def show_model(flags: Flags, *, digest: bool, as_json: bool) -> int:
    """Prints what the first model under these flags is; returns the exit code."""
    from pie.config import load

    facts = model_facts(load(flags).models[0], digest=digest)
    print(json.dumps(facts, ensure_ascii=False, indent=2) if as_json else as_text(facts))
    return 0


def model_facts(model: ModelConfig, *, digest: bool) -> dict[str, Any]:
    """What there is to say, as JSON values; units end the names.

    PieError `invalid-model` where the folder cannot be served. Weights are mapped; only their digest, and the look
    for numbers that are not finite, read them, in pieces.
    """
    from pie.backends.sizes import default_dtype
    from pie.models.description import describe, weights_digest
    from pie.models.loader import load_checkpoint
    from pie.models.spec import token_bytes

    checkpoint = load_checkpoint(model.folder)
    spec, said = checkpoint.spec, describe(checkpoint)
    dtype = default_dtype(checkpoint, float16=model.driver == "cuda") if model.dtype == "auto" else model.dtype
    kv_token_bytes = token_bytes(spec, dtype)
    rotary = spec.rotary
    return {
        "name": model.name,
        "folder": str(model.folder),
        "family": spec.family,
        "n_parameters": said.n_parameters,
        "weights_bytes": said.weights_bytes,
        "stored_dtypes": list(said.stored_dtypes),
        "dtype": dtype,
        "driver": model.driver,
        "deterministic": is_deterministic(model),
        "n_layers": spec.n_layers,
        "hidden_size": spec.hidden_size,
        "intermediate_size": spec.intermediate_size,
        "n_heads": spec.attention.n_heads,
        "n_kv_heads": spec.attention.n_kv_heads,
        "head_dim": spec.attention.head_dim,
        "tied_embeddings": spec.tied,
        "rotary": {
            "theta": rotary.theta,
            "scaling": type(rotary.scaling).__name__.removesuffix("Scaling").lower() if rotary.scaling else None,
        },
        "context_tokens": spec.max_positions,
        "vocabulary_tokens": spec.vocab_size,
        "chat_template": said.template,
        "end_tokens": [{"id": token.id, "text": token.text} for token in said.end_tokens],
        "kv_token_bytes": kv_token_bytes,
        "page_tokens": model.page_size,
        "kv_page_bytes": kv_token_bytes * model.page_size,
        "files": dict(said.files),
        "digest": weights_digest(model.folder, said.files) if digest else None,
        "not_finite": [name for name, tensor in checkpoint.tensors.items() if not tensor.is_finite()] if digest else None,
        "card": said.card,
    }


def is_deterministic(model: ModelConfig) -> bool:
    """Whether a row of logits has the same bits whatever else is in its batch."""
    return model.driver != "reference" and (model.driver != "cuda" or model.deterministic)


def as_text(facts: dict[str, Any]) -> str:
    """The facts for a reader, a line each, and the card."""
    scaling = f", scaled by {facts['rotary']['scaling']}" if facts["rotary"]["scaling"] else ""
    ends = ", ".join(f"{token['id']} {token['text'] or ''}".rstrip() for token in facts["end_tokens"])
    lines = {
        "name": facts["name"],
        "folder": facts["folder"],
        "architecture": f"{facts['family']}: {facts['n_layers']} layers, width {facts['hidden_size']}, MLP {facts['intermediate_size']}, "
        f"{facts['n_heads']} query and {facts['n_kv_heads']} key-value heads of {facts['head_dim']}"
        + (", tied embeddings" if facts["tied_embeddings"] else ""),
        "rotary": f"theta {facts['rotary']['theta']:g}{scaling}",
        "parameters": f"{facts['n_parameters']:,}",
        "weights": f"{facts['weights_bytes']:,} bytes of {', '.join(facts['stored_dtypes'])} in {len(facts['files'])} file(s)",
        "computed in": facts["dtype"],
        "driver": f"{facts['driver']}, {_SAME_ANSWER if facts['deterministic'] else _OTHER_ANSWER}",
        "context": f"{facts['context_tokens']:,} tokens",
        "vocabulary": f"{facts['vocabulary_tokens']:,} tokens",
        "chat template": facts["chat_template"] or "none",
        "end tokens": ends or "none",
        "keys and values": f"{facts['kv_token_bytes']:,} bytes a token, {facts['kv_page_bytes']:,} a page of {facts['page_tokens']}",
        "digest": facts["digest"] or "not computed",
    }
    if broken := facts["not_finite"]:
        more = f" and {len(broken) - _MAX_SHOWN_TENSORS} more" if len(broken) > _MAX_SHOWN_TENSORS else ""
        lines["damaged"] = (
            f"NaN or infinities in {', '.join(broken[:_MAX_SHOWN_TENSORS])}{more}: what uses them is bad-logits; fetch the model again"
        )
    text = "\n".join(f"{name:<16} {value}" for name, value in lines.items())
    return f"{text}\n\n{facts['card']}" if facts["card"] else text
