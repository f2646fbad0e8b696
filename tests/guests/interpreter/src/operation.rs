//! The operations as they stand in a file.

use inferlet::sample::Seeded;
use inferlet::{Context, Generator, Sampler};
use serde::Deserialize;

/// One operation: handles go by name.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Operation {
    Context { r#as: String, model: Option<String> },
    Fork { ctx: String, r#as: String },
    Save { ctx: String, name: String },
    Open { name: String, r#as: String },
    Take { name: String, r#as: String },
    Delete { name: String },
    Snapshots {},
    Snapshot { ctx: String, r#as: String },
    Suspend { ctx: String },
    Release { ctx: String },
    System { ctx: String, text: String },
    User { ctx: String, text: String },
    Assistant { ctx: String, text: String },
    Cue { ctx: String },
    Seal { ctx: String },
    Append { ctx: String, tokens: Vec<u32> },
    AppendText { ctx: String, text: String },
    Flush { ctx: String },
    Truncate { ctx: String, n: u32 },
    SeqLen { ctx: String },
    CachedTokens { ctx: String },
    PageSize { ctx: String },
    Buffer { ctx: String },
    Generate(Request),
    SetMaxTokens { r#gen: String, n: usize },
    Stop { r#gen: String, tokens: Vec<u32> },
    AddStop { r#gen: String, tokens: Vec<u32> },
    IgnoreEos { r#gen: String, value: bool },
    SetSeed { r#gen: String, seed: u64 },
    Step { r#gen: String },
    CollectTokens { r#gen: String },
    CollectText { r#gen: String },
    TokensGenerated { r#gen: String },
    IsDone { r#gen: String },
    FinishReason { r#gen: String },
    Encode { text: String },
    Decode { tokens: Vec<u32> },
    Models {},
    Version {},
    Username {},
    InstanceId {},
    Args {},
    LaunchSeed {},
    ModelName {},
    VocabSize {},
    Vocabs { tokens: Vec<u32> },
    SpecialTokens {},
    SplitRegex {},
    MessageTokens { role: String, text: String },
    CueTokens {},
    SealTokens {},
    StopTokens {},
    Send { text: String },
    Receive {},
    SendFile { data: Vec<u8> },
    ReceiveFile {},
    All { ops: Vec<Vec<Operation>> },
    ChatFeed { r#as: String, tokens: Vec<u32> },
    ChatFinish { r#as: String },
    ChatReset { r#as: String },
    ChatStream { r#gen: String },
    Sleep { ms: u64 },
}

/// A generator to be made. Rust has no `auto_flush`: it always does.
#[derive(Deserialize)]
pub struct Request {
    pub ctx: String,
    pub r#as: String,
    sampler: Choice,
    max_tokens: Option<usize>,
    #[serde(default)]
    stop: Vec<u32>,
    seed: Option<u64>,
    #[serde(default)]
    ignore_eos: bool,
}

#[derive(Deserialize)]
struct Choice {
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

impl Request {
    /// The generator, before the engine has checked it.
    pub fn start(&self, ctx: &Context) -> Generator {
        let mut generator = ctx.generate(self.sampler.sampler());
        if !self.stop.is_empty() {
            generator = generator.stop(&self.stop);
        }
        if self.ignore_eos {
            generator = generator.ignore_eos(true);
        }
        if let Some(n) = self.max_tokens {
            generator = generator.max_tokens(n);
        }
        if let Some(seed) = self.seed {
            generator = generator.seed(seed);
        }
        generator
    }
}

impl Choice {
    fn sampler(&self) -> Seeded {
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
