//! What the operations made, by name.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use inferlet::inference::{Grammar, Matcher};
use inferlet::mcp::client::Session;
use inferlet::messaging::Subscription;
use inferlet::sample::Handle;
use inferlet::{
    Adapter, Child, Context, Forward, Generator, Model, Output, Result, chat, reasoning, tools,
};
use serde_json::{Value, json};

use crate::steering::Logs;

/// Every handle. A handle is borrowed for one call only, so that branches can share it.
pub struct Handles {
    pub model: Model,
    /// What asked, where it was a request by HTTP.
    pub request: Option<Value>,
    // Dropped before their contexts, which then need no explicit release.
    generators: RefCell<HashMap<String, Generator>>,
    contexts: RefCell<HashMap<String, Context>>,
    decoders: RefCell<HashMap<String, chat::Decoder>>,
    thoughts: RefCell<HashMap<String, reasoning::Decoder>>,
    calls: RefCell<HashMap<String, tools::Decoder>>,
    passes: RefCell<HashMap<String, Forward<'static>>>,
    outputs: RefCell<HashMap<String, Output>>,
    slots: RefCell<HashMap<String, Reader>>,
    logs: RefCell<HashMap<String, Logs>>,
    grammars: RefCell<HashMap<String, Grammar>>,
    matchers: RefCell<HashMap<String, Matcher>>,
    subscriptions: RefCell<HashMap<String, Rc<Subscription>>>,
    children: RefCell<HashMap<String, Rc<Child>>>,
    sessions: RefCell<HashMap<String, Rc<Session>>>,
    adapters: RefCell<HashMap<String, Adapter>>,
}

/// Reads an output by one handle: what each accessor gives of it.
type Reader = Box<dyn Fn(&Output) -> Value>;

impl Handles {
    pub fn new(model: Model) -> Self {
        Self {
            model,
            request: None,
            contexts: RefCell::default(),
            generators: RefCell::default(),
            decoders: RefCell::default(),
            thoughts: RefCell::default(),
            calls: RefCell::default(),
            passes: RefCell::default(),
            outputs: RefCell::default(),
            slots: RefCell::default(),
            logs: RefCell::default(),
            grammars: RefCell::default(),
            matchers: RefCell::default(),
            subscriptions: RefCell::default(),
            children: RefCell::default(),
            sessions: RefCell::default(),
            adapters: RefCell::default(),
        }
    }

    pub fn add_adapter(&self, name: &str, adapter: Adapter) {
        self.adapters.borrow_mut().insert(name.to_owned(), adapter);
    }

    /// The adapter of that handle.
    pub fn adapter(&self, name: &str) -> Result<Adapter> {
        let adapters = self.adapters.borrow();
        let found = adapters.get(name).cloned();
        found.ok_or_else(|| unnamed("adapter", name))
    }

    pub fn add_session(&self, name: &str, session: Session) {
        let mut sessions = self.sessions.borrow_mut();
        sessions.insert(name.to_owned(), Rc::new(session));
    }

    /// A session with an MCP server, which branches share while they wait.
    pub fn session(&self, name: &str) -> Result<Rc<Session>> {
        let sessions = self.sessions.borrow();
        let found = sessions.get(name).cloned();
        found.ok_or_else(|| unnamed("session", name))
    }

    /// Drops a session, which closes it.
    pub fn drop_session(&self, name: &str) {
        self.sessions.borrow_mut().remove(name);
    }

    pub fn add_child(&self, name: &str, child: Child) {
        let mut children = self.children.borrow_mut();
        children.insert(name.to_owned(), Rc::new(child));
    }

    /// A child, which branches share while they wait.
    pub fn child(&self, name: &str) -> Result<Rc<Child>> {
        let children = self.children.borrow();
        let found = children.get(name).cloned();
        found.ok_or_else(|| unnamed("child", name))
    }

    pub fn add_subscription(&self, name: &str, subscription: Subscription) {
        let mut subscriptions = self.subscriptions.borrow_mut();
        subscriptions.insert(name.to_owned(), Rc::new(subscription));
    }

    /// A subscription, which branches share while they wait.
    pub fn subscription(&self, name: &str) -> Result<Rc<Subscription>> {
        let subscriptions = self.subscriptions.borrow();
        let found = subscriptions.get(name).cloned();
        found.ok_or_else(|| format!("there is no subscription {name}"))
    }

    pub fn add_pass(&self, name: &str, pass: Forward<'static>) {
        self.passes.borrow_mut().insert(name.to_owned(), pass);
    }

    pub fn add_output(&self, name: &str, output: Output) {
        self.outputs.borrow_mut().insert(name.to_owned(), output);
    }

    /// Keeps a handle, by which outputs are read.
    pub fn add_handle(&self, name: &str, handle: impl Handle + 'static) {
        let reader: Reader = Box::new(move |output| reading(output, handle));
        self.slots.borrow_mut().insert(name.to_owned(), reader);
    }

    pub fn add_logs(&self, name: &str, logs: Logs) {
        self.logs.borrow_mut().insert(name.to_owned(), logs);
    }

    pub fn add_grammar(&self, name: &str, grammar: Grammar) {
        self.grammars.borrow_mut().insert(name.to_owned(), grammar);
    }

    pub fn add_matcher(&self, name: &str, matcher: Matcher) {
        self.matchers.borrow_mut().insert(name.to_owned(), matcher);
    }

    /// A matcher of the grammar of that name.
    pub fn start_matcher(&self, name: &str, grammar: &str) -> Result<()> {
        let grammars = self.grammars.borrow();
        let grammar = grammars
            .get(grammar)
            .ok_or_else(|| unnamed("grammar", grammar))?;
        self.add_matcher(name, Matcher::new(grammar, self.model.tokenizer()));
        self.matcher(name, |_| ())
    }

    /// Calls the matcher of that name; an error that it keeps is returned.
    pub fn matcher<T>(&self, name: &str, call: impl FnOnce(&mut Matcher) -> T) -> Result<T> {
        let mut matchers = self.matchers.borrow_mut();
        let matcher = matchers
            .get_mut(name)
            .ok_or_else(|| unnamed("matcher", name))?;
        let answer = call(matcher);
        matcher.accept_tokens(&[]).map(|()| answer)
    }

    /// What the constraints and the speculator of the generator of that name were told.
    pub fn logs<T>(&self, name: &str, call: impl FnOnce(&mut Logs) -> T) -> Result<T> {
        Ok(call(
            self.logs
                .borrow_mut()
                .get_mut(name)
                .ok_or_else(|| unnamed("generator", name))?,
        ))
    }

    /// Calls the pass of that name.
    pub fn pass<T>(&self, name: &str, call: impl FnOnce(&mut Forward<'static>) -> T) -> Result<T> {
        Ok(call(
            self.passes
                .borrow_mut()
                .get_mut(name)
                .ok_or_else(|| unnamed("pass", name))?,
        ))
    }

    /// What the output of that name has of the handle of that name.
    pub fn read(&self, output: &str, handle: &str) -> Value {
        let outputs = self.outputs.borrow();
        let Some(output) = outputs.get(output) else {
            return json!({});
        };
        if handle == "auto" {
            let auto = output.auto_sampler();
            return auto.map_or_else(|| json!({}), |auto| reading(output, auto));
        }
        let slots = self.slots.borrow();
        slots
            .get(handle)
            .map_or_else(|| json!({}), |read| read(output))
    }

    pub fn add_context(&self, name: &str, ctx: Context) {
        self.contexts.borrow_mut().insert(name.to_owned(), ctx);
    }

    pub fn add_generator(&self, name: &str, generator: Generator) {
        self.generators
            .borrow_mut()
            .insert(name.to_owned(), generator);
    }

    /// Takes the context of that name out.
    pub fn take_context(&self, name: &str) -> Result<Context> {
        let taken = self.contexts.borrow_mut().remove(name);
        taken.ok_or_else(|| unnamed("context", name))
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

    /// The same of thoughts.
    pub fn thoughts<T>(&self, name: &str, call: impl FnOnce(&mut reasoning::Decoder) -> T) -> T {
        let mut decoders = self.thoughts.borrow_mut();
        let decoder = decoders.entry(name.to_owned());
        call(decoder.or_insert_with(|| reasoning::Decoder::new(&self.model)))
    }

    /// The same of calls.
    pub fn calls<T>(&self, name: &str, call: impl FnOnce(&mut tools::Decoder) -> T) -> T {
        let mut decoders = self.calls.borrow_mut();
        let decoder = decoders.entry(name.to_owned());
        call(decoder.or_insert_with(|| tools::Decoder::new(&self.model)))
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

/// What the accessors give of a handle, those that give nothing left out.
fn reading(output: &Output, handle: impl Handle) -> Value {
    let mut found = serde_json::Map::new();
    if let Some(token) = output.token(handle) {
        found.insert("token".into(), json!(token));
        found.insert("tokens".into(), json!(output.tokens_at(handle)));
    }
    if let Some((tokens, values)) = output.distribution(handle) {
        let shown = if tokens.len() <= 8 {
            json!([tokens, values])
        } else {
            let ids = tokens.iter().map(|id| f64::from(*id));
            json!([
                summed(ids),
                summed(values.iter().map(|value| f64::from(*value)))
            ])
        };
        found.insert("distribution".into(), shown);
    }
    if let Some(bytes) = output.logits(handle) {
        found.insert("logits".into(), json!(summed(floats(bytes))));
    }
    if let Some(bytes) = output.embedding(handle) {
        let values: Vec<f64> = floats(bytes).collect();
        found.insert("embedding".into(), json!(values));
    }
    if let Some(values) = output.logprobs(handle) {
        found.insert("logprobs".into(), json!(values));
    }
    if let Some(value) = output.entropy(handle) {
        found.insert("entropy".into(), json!(value));
    }
    Value::Object(found)
}

/// The numbers of their bytes.
fn floats(bytes: &[u8]) -> impl Iterator<Item = f64> {
    let floats = bytes.as_chunks::<4>().0.iter();
    floats.map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
}

/// How many, the first, the last, and their sum.
fn summed(values: impl Iterator<Item = f64>) -> [f64; 4] {
    let values: Vec<f64> = values.collect();
    let (first, last) = (values.first(), values.last());
    let [first, last] = [first, last].map(|value| value.copied().unwrap_or_default());
    [values.len() as f64, first, last, values.iter().sum()]
}

fn unnamed(kind: &str, name: &str) -> String {
    format!("the vector names no {kind} {name:?}")
}
