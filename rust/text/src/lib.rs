//! Tokenizer, chat templates and decoders.
