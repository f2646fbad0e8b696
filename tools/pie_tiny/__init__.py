"""How pie-tiny, the embedded chat model, is made: data, tokenizer, training, export."""
