"""What a released model directory says, by way of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

_MAX_TOKENS = 160

PROMPTS = (
    "Hello!",
    "Who are you?",
    "How are you today?",
    "Tell me a short story about a fox.",
    "What is the capital of France?",
    "Name three colours.",
    "What is 17 + 25?",
    "Explain what a language model is.",
    "Write a short poem about the sea.",
    "What does an owl eat? Answer in JSON.",
    "Think step by step. What is 345 + 278?",
    "Sort these words: pear, apple, cherry.",
)
"""Requests that show one skill each."""


class Speaker:
    """A loaded model directory that answers conversations."""

    def __init__(self, release: Path) -> None:
        self.tokenizer: Any = AutoTokenizer.from_pretrained(release)
        self.model: Any = AutoModelForCausalLM.from_pretrained(release, dtype=torch.float32)

    def answer(
        self, messages: list[dict[str, Any]], *, temperature: float = 0.0, seed: int = 0, template: dict[str, Any] | None = None
    ) -> tuple[str, bool]:
        """The text of the answer, control tokens shown, and whether it stopped by itself.

        `template` holds what else the chat template takes, such as `tools` and `enable_thinking`.
        """
        torch.manual_seed(seed)
        inputs = self.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True, **(template or {})
        )
        sampling: dict[str, Any] = (
            {"do_sample": True, "temperature": temperature, "top_p": 1.0, "top_k": 0}
            if temperature > 0
            else {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        )
        with torch.no_grad():
            output = self.model.generate(**inputs, max_new_tokens=_MAX_TOKENS, **sampling)
        new = output[0, inputs["input_ids"].shape[1] :].tolist()
        stops = self.model.generation_config.eos_token_id
        stopped = bool(new) and new[-1] in stops
        return str(self.tokenizer.decode(new[:-1] if stopped else new)), stopped
