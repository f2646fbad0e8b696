//! What the operations made, by name.

use std::cell::RefCell;
use std::collections::HashMap;

use inferlet::{Context, Generator, Model, Result, chat};
use serde_json::{Value, json};

/// Every handle. A handle is borrowed for one call only, so that branches can share it.
pub struct Handles {
    pub model: Model,
    // Dropped before their contexts, which then need no explicit release.
    generators: RefCell<HashMap<String, Generator>>,
    contexts: RefCell<HashMap<String, Context>>,
    decoders: RefCell<HashMap<String, chat::Decoder>>,
}

impl Handles {
    pub fn new(model: Model) -> Self {
        Self {
            model,
            contexts: RefCell::default(),
            generators: RefCell::default(),
            decoders: RefCell::default(),
        }
    }

    pub fn add_context(&self, name: &str, ctx: Context) {
        self.contexts.borrow_mut().insert(name.to_owned(), ctx);
    }

    pub fn add_generator(&self, name: &str, generator: Generator) {
        self.generators
            .borrow_mut()
            .insert(name.to_owned(), generator);
    }

    /// Calls the context of that name.
    pub fn context<T>(&self, name: &str, call: impl FnOnce(&mut Context) -> T) -> Result<T> {
        Ok(call(
            self.contexts
                .borrow_mut()
                .get_mut(name)
                .ok_or_else(|| unnamed("context", name))?,
        ))
    }

    /// Calls the generator of that name.
    pub fn generator<T>(&self, name: &str, call: impl FnOnce(&mut Generator) -> T) -> Result<T> {
        Ok(call(
            self.generators
                .borrow_mut()
                .get_mut(name)
                .ok_or_else(|| unnamed("generator", name))?,
        ))
    }

    /// Puts the generator of that name through a builder method.
    pub fn rebuild(&self, name: &str, build: impl FnOnce(Generator) -> Generator) -> Result<()> {
        let generator = build(
            self.generators
                .borrow_mut()
                .remove(name)
                .ok_or_else(|| unnamed("generator", name))?,
        );
        let kept = generator.check();
        self.add_generator(name, generator);
        kept
    }

    /// Calls the decoder of that name, which is made on its first use.
    pub fn decoder<T>(&self, name: &str, call: impl FnOnce(&mut chat::Decoder) -> T) -> T {
        let mut decoders = self.decoders.borrow_mut();
        let decoder = decoders.entry(name.to_owned());
        call(decoder.or_insert_with(|| chat::Decoder::new(&self.model)))
    }
}

/// An event as the vectors write it.
pub fn event(event: chat::Event) -> Value {
    match event {
        chat::Event::Idle => json!({ "type": "idle" }),
        chat::Event::Delta(text) => json!({ "type": "delta", "text": text }),
        chat::Event::Done(text) => json!({ "type": "done", "text": text }),
        chat::Event::Interrupt(token) => json!({ "type": "interrupt", "token": token }),
    }
}

fn unnamed(kind: &str, name: &str) -> String {
    format!("the vector names no {kind} {name:?}")
}
