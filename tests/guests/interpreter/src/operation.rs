//! The operations as they stand in a file.

use inferlet::inference::Grammar;
use inferlet::sample::{
    Distribution, Embedding, Entropy, Logits, Logprob, Logprobs, Probe, Seeded,
};
use inferlet::{
    Adapter, AnyJson, Context, Ebnf, Generator, GrammarConstraint, JsonSchema, Model, Regex,
    Result, Sampler, Schema, tools,
};
use serde::Deserialize;
use serde_json::Value;

use crate::steering::Logs;

/// One operation: handles go by name.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Operation {
    Context {
        r#as: String,
        model: Option<String>,
    },
    Fork {
        ctx: String,
        r#as: String,
    },
    Save {
        ctx: String,
        name: String,
    },
    Open {
        name: String,
        r#as: String,
    },
    Take {
        name: String,
        r#as: String,
    },
    Delete {
        name: String,
    },
    Snapshots {},
    Snapshot {
        ctx: String,
        r#as: String,
    },
    Suspend {
        ctx: String,
    },
    SetBid {
        ctx: String,
        bid: f64,
    },
    Idle {
        ctx: String,
        within: Vec<Operation>,
    },
    Balance {},
    Dividend {},
    Price {},
    Rent {
        ctx: String,
    },
    Latency {
        ctx: String,
    },
    Release {
        ctx: String,
    },
    System {
        ctx: String,
        text: String,
    },
    User {
        ctx: String,
        text: String,
    },
    Assistant {
        ctx: String,
        text: String,
    },
    Cue {
        ctx: String,
    },
    Seal {
        ctx: String,
    },
    Append {
        ctx: String,
        tokens: Vec<u32>,
    },
    AppendText {
        ctx: String,
        text: String,
    },
    Flush {
        ctx: String,
    },
    Truncate {
        ctx: String,
        n: u32,
    },
    SeqLen {
        ctx: String,
    },
    CachedTokens {
        ctx: String,
    },
    PageSize {
        ctx: String,
    },
    Buffer {
        ctx: String,
    },
    Forward {
        ctx: String,
        r#as: String,
    },
    Input {
        fwd: String,
        tokens: Vec<u32>,
    },
    InputAt {
        fwd: String,
        tokens: Vec<u32>,
        positions: Vec<u32>,
    },
    AttentionMask {
        fwd: String,
        masks: Vec<Vec<u32>>,
    },
    Mask {
        fwd: String,
        mask: Vec<u32>,
    },
    Sample {
        fwd: String,
        r#as: String,
        indices: Vec<u32>,
        sampler: Choice,
    },
    Probe {
        fwd: String,
        r#as: String,
        index: u32,
        probe: Reading,
    },
    PassZoSeed {
        fwd: String,
        seed: i64,
    },
    PassAdapter {
        fwd: String,
        adapter: String,
    },
    Adapter {
        r#as: String,
        name: String,
        rank: Option<u32>,
        alpha: Option<f32>,
    },
    AdapterOpen {
        name: String,
        r#as: String,
    },
    AdapterNames {},
    AdapterFork {
        adapter: String,
        name: String,
        r#as: String,
    },
    AdapterChange {
        adapter: String,
        changes: Vec<(i64, f32)>,
        sigma: Option<f32>,
    },
    AdapterSave {
        adapter: String,
        path: String,
    },
    AdapterLoad {
        adapter: String,
        path: String,
    },
    AdapterDestroy {
        adapter: String,
    },
    UseAdapter {
        r#gen: String,
        adapter: String,
    },
    StartPosition {
        fwd: String,
    },
    Execute {
        fwd: String,
        r#as: String,
    },
    Read {
        out: String,
        handle: String,
    },
    MaskOfBools {
        allowed: Vec<bool>,
    },
    MaskShortest {
        mask: Vec<u32>,
        length: u32,
    },
    MaskAnd {
        masks: Vec<Vec<u32>>,
        length: u32,
    },
    MaskAllowing {
        elements: Vec<u32>,
        length: u32,
    },
    MaskAllowed {
        mask: Vec<u32>,
        length: u32,
    },
    MaskPack {
        mask: Vec<u32>,
        length: u32,
    },
    MaskUnpack {
        bits: Vec<u8>,
        length: u32,
    },
    MaskWindow {
        start: u32,
        n: u32,
        window: u32,
        sinks: u32,
    },
    MaskCausal {
        start: u32,
        n: u32,
    },
    Generate(Request),
    SetMaxTokens {
        r#gen: String,
        n: usize,
    },
    Stop {
        r#gen: String,
        tokens: Vec<u32>,
    },
    AddStop {
        r#gen: String,
        tokens: Stops,
    },
    IgnoreEos {
        r#gen: String,
        value: bool,
    },
    LogitMask {
        r#gen: String,
        mask: Vec<u32>,
    },
    SystemSpeculation {
        r#gen: String,
        model: Option<String>,
    },
    SetSeed {
        r#gen: String,
        seed: u64,
    },
    ProbeEachStep {
        r#gen: String,
        r#as: String,
        index: u32,
        probe: Reading,
    },
    Horizon {
        r#gen: String,
        n: usize,
    },
    RebidEachStep {
        r#gen: String,
        value: bool,
    },
    ZoSeed {
        r#gen: String,
        seed: i64,
    },
    Constrain {
        r#gen: String,
        constrain: Vec<Constraint>,
    },
    Accept {
        r#gen: String,
        tokens: Vec<u32>,
    },
    ConstraintLog {
        r#gen: String,
    },
    SpeculatorLog {
        r#gen: String,
    },
    Step(Step),
    CollectTokens {
        r#gen: String,
    },
    CollectText {
        r#gen: String,
    },
    CollectJson {
        r#gen: String,
    },
    GiveUp {
        r#gen: String,
        how: String,
        beside: String,
        seen: Vec<Operation>,
    },
    Grammar {
        r#as: String,
        #[serde(flatten)]
        source: Source,
    },
    Matcher {
        r#as: String,
        grammar: String,
    },
    MatcherMask {
        matcher: String,
    },
    MatcherAccept {
        matcher: String,
        tokens: Vec<u32>,
    },
    MatcherForced {
        matcher: String,
    },
    MatcherEnded {
        matcher: String,
    },
    MatcherReset {
        matcher: String,
    },
    MatcherFork {
        matcher: String,
        r#as: String,
    },
    TokensGenerated {
        r#gen: String,
    },
    IsDone {
        r#gen: String,
    },
    FinishReason {
        r#gen: String,
    },
    Encode {
        text: String,
    },
    Decode {
        tokens: Vec<u32>,
    },
    Models {},
    Version {},
    Request {},
    Username {},
    InstanceId {},
    Args {},
    LaunchSeed {},
    ModelName {},
    VocabSize {},
    Vocabs {
        tokens: Vec<u32>,
    },
    SpecialTokens {},
    SplitRegex {},
    MessageTokens {
        role: String,
        text: String,
    },
    CueTokens {},
    SealTokens {},
    StopTokens {},
    Send {
        text: String,
    },
    Receive {},
    SendJson {
        value: serde_json::Value,
    },
    Message {
        text: String,
    },
    SendFile {
        data: Vec<u8>,
    },
    ReceiveFile {},
    All {
        ops: Vec<Vec<Operation>>,
    },
    ChatFeed {
        r#as: String,
        tokens: Vec<u32>,
    },
    ChatFinish {
        r#as: String,
    },
    ChatReset {
        r#as: String,
    },
    ChatStream {
        r#gen: String,
    },
    TextStream {
        r#gen: String,
    },
    ChatAll {
        r#as: String,
        pieces: Vec<Vec<u32>>,
    },
    Equip {
        ctx: String,
        schemas: Vec<String>,
    },
    Answer {
        ctx: String,
        name: String,
        value: String,
        id: Option<String>,
    },
    EquipTokens {
        schemas: Vec<String>,
    },
    AnswerTokens {
        name: String,
        value: String,
    },
    ParseCall {
        text: String,
    },
    NativeGrammar {
        schemas: Vec<String>,
        choice: Wanted,
        texts: Vec<String>,
    },
    ThoughtsFeed {
        r#as: String,
        tokens: Vec<u32>,
    },
    ThoughtsFinish {
        r#as: String,
    },
    ThoughtsReset {
        r#as: String,
    },
    ThoughtsAll {
        r#as: String,
        pieces: Vec<Vec<u32>>,
    },
    ThoughtsStream {
        r#gen: String,
    },
    CallsFeed {
        r#as: String,
        tokens: Vec<u32>,
    },
    CallsFinish {
        r#as: String,
    },
    CallsReset {
        r#as: String,
    },
    CallsAll {
        r#as: String,
        pieces: Vec<Vec<u32>>,
    },
    CallsStream {
        r#gen: String,
    },
    Visible {
        tokens: Vec<u32>,
    },
    Push {
        topic: String,
        message: String,
    },
    Pull {
        topic: String,
    },
    Broadcast {
        topic: String,
        message: String,
        #[serde(default = "once")]
        n: usize,
    },
    McpServers {},
    McpConnect {
        r#as: String,
        server: String,
        #[serde(default)]
        later: bool,
    },
    McpAsk(McpAsk),
    McpGiveUp {
        #[serde(flatten)]
        ask: McpAsk,
        meanwhile: McpAsk,
    },
    McpEquip {
        ctx: String,
        session: String,
    },
    McpClose {
        session: String,
    },
    Subscribe {
        topic: String,
        r#as: String,
    },
    Next {
        sub: String,
    },
    Get {
        sub: String,
    },
    Lagged {
        sub: String,
    },
    Unsubscribe {
        sub: String,
    },
    Spawn {
        r#as: String,
        program: String,
        input: serde_json::Value,
        #[serde(default)]
        output: bool,
        #[serde(default)]
        detached: bool,
        seed: Option<u64>,
        token_budget: Option<u64>,
        credits: Option<f64>,
    },
    Wait {
        child: String,
    },
    WaitsInVain {
        child: String,
    },
    Cancel {
        child: String,
    },
    Pid {
        child: String,
    },
    HashOfSeed {},
    Sleep {
        ms: u64,
    },
}

const fn once() -> usize {
    1
}

/// A generator to be made. Rust has no `auto_flush`: it always does.
#[derive(Deserialize)]
pub struct Request {
    pub ctx: String,
    pub r#as: String,
    sampler: Choice,
    max_tokens: Option<usize>,
    #[serde(default)]
    stop: Stops,
    seed: Option<u64>,
    #[serde(default)]
    ignore_eos: bool,
    #[serde(default)]
    logit_mask: Vec<u32>,
    #[serde(default)]
    system_speculation: Speculation,
    zo_seed: Option<i64>,
    pub adapter: Option<String>,
    horizon: Option<usize>,
    rebid_each_step: Option<bool>,
    #[serde(default)]
    constrain: Vec<Constraint>,
    speculator: Option<Proposals>,
    tool_choice: Option<Wanted>,
}

/// What a generation stops at: a text, or tokens and texts.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Stops {
    Text(String),
    List(Vec<Stop>),
}

/// One of them.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Stop {
    Token(u32),
    Text(String),
}

impl Default for Stops {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Stops {
    /// The generator that stops at them too.
    pub fn add_to(&self, generator: Generator) -> Generator {
        let list = match self {
            Self::Text(text) => return generator.stop_texts([text]),
            Self::List(list) => list,
        };
        list.iter().fold(generator, |generator, stop| match stop {
            Stop::Token(token) => generator.add_stop(&[*token]),
            Stop::Text(text) => generator.stop_texts([text]),
        })
    }
}

/// Whether the model is to call a tool.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Wanted {
    Named { name: String },
    Kind(String),
}

impl Wanted {
    pub fn choice(&self) -> tools::Choice {
        match self {
            Self::Named { name } => tools::Choice::Named(name.clone()),
            Self::Kind(kind) if kind == "auto" => tools::Choice::Auto,
            Self::Kind(kind) if kind == "none" => tools::Choice::None,
            Self::Kind(_) => tools::Choice::Required,
        }
    }
}

/// Whether the engine proposes tokens, or which model does.
#[derive(Deserialize)]
#[serde(untagged)]
enum Speculation {
    ByEngine(bool),
    ByModel(String),
}

impl Default for Speculation {
    fn default() -> Self {
        Self::ByEngine(false)
    }
}

/// A constraint that answers with these masks in turn, or one by a grammar.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Constraint {
    Masks { masks: Vec<Vec<u32>> },
    Grammar(Source),
}

/// The source of a grammar.
#[derive(Deserialize)]
pub struct Source {
    kind: Syntax,
    source: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Syntax {
    JsonSchema,
    AnyJson,
    Regex,
    Ebnf,
}

impl Source {
    pub fn grammar(&self) -> Result<Grammar> {
        match self.kind {
            Syntax::JsonSchema => Grammar::from_json_schema(&self.source),
            Syntax::AnyJson => Grammar::json(),
            Syntax::Regex => Grammar::from_regex(&self.source),
            Syntax::Ebnf => Grammar::from_ebnf(&self.source),
        }
    }

    pub fn constraint(&self, model: &Model) -> Result<GrammarConstraint> {
        match self.kind {
            Syntax::JsonSchema => JsonSchema(&self.source).build_constraint(model),
            Syntax::AnyJson => AnyJson.build_constraint(model),
            Syntax::Regex => Regex(&self.source).build_constraint(model),
            Syntax::Ebnf => Ebnf(&self.source).build_constraint(model),
        }
    }
}

/// A speculator that proposes these tokens in turn.
#[derive(Deserialize)]
struct Proposals {
    drafts: Vec<Vec<u32>>,
}

/// A step to be executed.
#[derive(Deserialize)]
pub struct Step {
    pub r#gen: String,
    pub r#as: Option<String>,
    #[serde(default)]
    pub clear: bool,
    #[serde(default)]
    pub probes: Vec<StepProbe>,
}

/// A probe of one step.
#[derive(Deserialize)]
pub struct StepProbe {
    pub r#as: String,
    pub index: u32,
    pub probe: Reading,
}

/// A sampler.
#[derive(Deserialize)]
pub struct Choice {
    #[serde(flatten)]
    kind: Kind,
    seed: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Kind {
    Argmax {},
    TopP { temperature: f32, p: f32 },
    TopK { temperature: f32, k: u32 },
    MinP { temperature: f32, p: f32 },
    TopKTopP { temperature: f32, k: u32, p: f32 },
    Multinomial { temperature: f32, draws: u32 },
}

/// A probe.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reading {
    Logits {},
    Distribution { temperature: f32, k: u32 },
    Logprob { token: u32 },
    Logprobs { tokens: Vec<u32> },
    Entropy {},
    Embedding {},
}

impl Reading {
    /// As the engine takes it.
    pub fn probe(&self) -> inferlet::pie::core::sampling::Probe {
        match self {
            Self::Logits {} => Logits.to_raw(),
            Self::Distribution { temperature, k } => {
                let (temperature, k) = (*temperature, *k);
                Distribution { temperature, k }.to_raw()
            }
            Self::Logprob { token } => Logprob(*token).to_raw(),
            Self::Logprobs { tokens } => Logprobs(tokens.clone()).to_raw(),
            Self::Entropy {} => Entropy.to_raw(),
            Self::Embedding {} => Embedding.to_raw(),
        }
    }
}

impl Request {
    /// The generator, before the engine has checked it, and what its constraints and its speculator will be told.
    pub fn start(&self, ctx: &Context, adapter: Option<&Adapter>) -> Result<(Generator, Logs)> {
        let mut generator = ctx.generate(self.sampler.sampler());
        generator = self.stop.add_to(generator);
        if self.ignore_eos {
            generator = generator.ignore_eos(true);
        }
        if let Some(n) = self.max_tokens {
            generator = generator.max_tokens(n);
        }
        if let Some(seed) = self.seed {
            generator = generator.seed(seed);
        }
        if !self.logit_mask.is_empty() {
            generator = generator.logit_mask(&self.logit_mask);
        }
        generator = match &self.system_speculation {
            Speculation::ByEngine(false) => generator,
            Speculation::ByEngine(true) => generator.system_speculation(),
            Speculation::ByModel(name) => generator.draft_model(name),
        };
        if let Some(adapter) = adapter {
            generator = generator.adapter(adapter);
        }
        if let Some(seed) = self.zo_seed {
            generator = generator.zo_seed(seed);
        }
        if let Some(n) = self.horizon {
            generator = generator.horizon(n);
        }
        if let Some(rebid) = self.rebid_each_step {
            generator = generator.rebid_each_step(rebid);
        }
        if let Some(wanted) = &self.tool_choice {
            generator = generator.tool_choice(wanted.choice());
        }
        let mut logs = Logs::default();
        for constraint in &self.constrain {
            generator = match constraint {
                Constraint::Masks { masks } => generator.constrain(logs.constraint(masks)),
                Constraint::Grammar(source) => generator.constrain(source.constraint(ctx.model())?),
            };
        }
        if let Some(Proposals { drafts }) = &self.speculator {
            // A speculator cannot hold its context, and so counts.
            let start = ctx.seq_len() + ctx.buffer().len() as u32;
            generator = generator.speculator(logs.speculator(start, drafts));
        }
        Ok((generator, logs))
    }
}

impl Choice {
    pub fn sampler(&self) -> Seeded {
        let sampler = match self.kind {
            Kind::Argmax {} => Sampler::Argmax,
            Kind::TopP { temperature, p } => Sampler::top_p(temperature, p),
            Kind::TopK { temperature, k } => Sampler::top_k(temperature, k),
            Kind::MinP { temperature, p } => Sampler::min_p(temperature, p),
            Kind::TopKTopP { temperature, k, p } => Sampler::top_k_top_p(temperature, k, p),
            Kind::Multinomial { temperature, draws } => Sampler::multinomial(temperature, draws),
        };
        match self.seed {
            Some(seed) => sampler.seed(seed),
            None => sampler.into(),
        }
    }
}

/// What a session with an MCP server is asked for.
#[derive(Clone, Deserialize)]
pub struct McpAsk {
    /// The name of the session; what is asked meanwhile has that of the other.
    #[serde(default)]
    pub session: String,
    pub what: String,
    /// A name, and arguments: an object, or its text.
    #[serde(default)]
    pub args: Vec<Value>,
    /// Whether it is awaited.
    #[serde(default)]
    pub later: bool,
}
