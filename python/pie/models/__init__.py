"""Models as data: a folder in the Hugging Face format becomes a `DecoderSpec` and memory-mapped weights."""
