//! What an engine is made with. Every value is checked when the engine is made.

use crate::errors::{Error, ErrorCode, Result};

/// The configuration of the engine of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// The name of the model.
    pub model: String,
    /// Token ids are below this. 1 to 2^21.
    pub vocab_size: u32,
    /// Tokens that a page holds. 1 to 1024.
    pub page_size: u32,
    /// Pages in the pool. 1 to 2^24.
    pub n_pages: u32,
    /// Whether the next token of a generation is computed before its program asks for it.
    pub run_ahead: bool,
    /// Whether a pass looks for what was computed before of the tokens that it is to compute. Without it, forks still
    /// share their pages.
    pub prefix_cache: bool,
    /// Pages that fit into the driver's host memory, to which contexts are swapped out. 0 to 2^24; 0: nothing is
    /// swapped.
    pub host_slots: u32,
    /// What copying a page to host memory and back costs the driver, one way, in nanoseconds; weighed against computing
    /// it again.
    pub copy_page_ns: u64,
    /// Most tokens in a batch, of all its sequences. 1 to 2^20.
    pub max_batch_tokens: u32,
    /// Most tokens of one sequence in a batch. 1 to 2^20.
    pub prefill_chunk: u32,
    /// Most sequences in a batch. 1 to 2^16.
    pub max_batch_seqs: u32,
    /// Most rows of logits in a batch, beside the one of each generation. 1 to 2^20.
    pub max_batch_rows: u32,
    /// Most tokens of a context, which are the positions that the model knows. 1 to 2^24.
    pub max_context: u32,
    /// Contexts that may live at once. 1 to 2^20.
    pub max_contexts: u32,
    /// Contexts of one process that may live at once, so that none takes those of the others. 1 to 2^20; none: a
    /// quarter of `max_contexts`, rounded up.
    pub max_process_contexts: Option<u32>,
    /// Contexts of all processes of one user that may live at once. 1 to 2^20; none: half of `max_contexts`, rounded
    /// up.
    pub max_user_contexts: Option<u32>,
    /// Snapshots that may be kept at once. 1 to 2^20.
    pub max_snapshots: u32,
    /// Snapshots of one user that may be kept at once, so that none takes the room of the others. 1 to 2^20; none: an
    /// eighth of `max_snapshots`, rounded up.
    pub max_user_snapshots: Option<u32>,
    /// Requests that may be entered and not yet taken. 1 to 2^20.
    pub max_waiting: u32,
    /// Requests of one process that may be entered and not yet taken. 1 to 2^20; none: a quarter of `max_waiting`,
    /// rounded up.
    pub max_process_waiting: Option<u32>,
    /// The same of all processes of one user. 1 to 2^20; none: half of `max_waiting`, rounded up.
    pub max_user_waiting: Option<u32>,
    /// Tokens with which the model ends a text.
    pub end_tokens: Vec<u32>,
    /// How long a batch may wait for programs that step by themselves and are expected back, in nanoseconds. 0 never
    /// waits.
    pub hold_ns: u64,
    /// How long a batch in which several users take part may take for the sake of those who decode in it, as estimated,
    /// in nanoseconds; or one and a half times as long as it would if each of them decoded as little as the one who
    /// decodes the least, if that is longer, up to four times this or four times the shortest batch. That is the bound
    /// too where one user computes and another has a process. 0: any time.
    pub shared_step_ns: u64,
    /// What the driver serves.
    pub serves: Serves,
    /// How long a driver may take for a batch until its requests fail, in nanoseconds. 0: any time.
    pub driver_timeout_ns: u64,
    /// Rows that may wait for token masks that come late, those of passes included that are not computed yet; a quarter
    /// of them, rounded up, of one process. Each takes `4 V` bytes while it is kept. 1 to 2^16.
    pub max_late_rows: u32,
    /// How long a pass of which everything is computed may wait for the token masks of its rows until it fails, in
    /// nanoseconds.
    pub late_mask_ns: u64,
    /// Names of settings in messages.
    pub names: SettingNames,
}

/// Where users find settings whose names or units are others than those here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingNames {
    /// What gives more [`EngineConfig::n_pages`].
    pub n_pages: &'static str,
    /// What gives a longer [`EngineConfig::driver_timeout_ns`].
    pub driver_timeout: &'static str,
}

impl Default for SettingNames {
    fn default() -> Self {
        Self {
            n_pages: "n_pages",
            driver_timeout: "driver_timeout_ns",
        }
    }
}

/// What a driver serves beyond plain tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serves {
    /// Attention masks.
    pub masks: bool,
    /// Positions that repeat, jump and reorder.
    pub positions: bool,
    /// Adapters.
    pub adapters: bool,
    /// Sequences whose token the batch before draws.
    pub follows: bool,
}

impl Default for Serves {
    fn default() -> Self {
        Self {
            masks: true,
            positions: true,
            adapters: true,
            follows: false,
        }
    }
}

impl EngineConfig {
    /// The defaults for a model: pages of 16 tokens, a pool of 4,096 pages, batches of 512 tokens.
    pub fn new(model: impl Into<String>, vocab_size: u32) -> Self {
        Self {
            model: model.into(),
            vocab_size,
            page_size: 16,
            n_pages: 4096,
            run_ahead: true,
            prefix_cache: true,
            host_slots: 0,
            copy_page_ns: 0,
            max_batch_tokens: 512,
            prefill_chunk: 512,
            max_batch_seqs: 256,
            max_batch_rows: 256,
            serves: Serves::default(),
            max_context: 32_768,
            max_contexts: 4096,
            max_process_contexts: None,
            max_user_contexts: None,
            max_snapshots: 4096,
            max_user_snapshots: None,
            max_waiting: 4096,
            max_process_waiting: None,
            max_user_waiting: None,
            end_tokens: Vec::new(),
            hold_ns: 2_000_000,
            shared_step_ns: 1_500_000,
            driver_timeout_ns: 60_000_000_000,
            max_late_rows: 256,
            late_mask_ns: 10_000_000_000,
            names: SettingNames::default(),
        }
    }

    /// Contexts that one process may have.
    pub(crate) fn process_contexts(&self) -> u32 {
        self.max_process_contexts
            .unwrap_or(self.max_contexts.div_ceil(4))
    }

    /// Contexts that one user may have.
    pub(crate) fn user_contexts(&self) -> u32 {
        self.max_user_contexts
            .unwrap_or(self.max_contexts.div_ceil(2))
    }

    /// Requests that one user may have entered and not taken.
    pub(crate) fn user_waiting(&self) -> u32 {
        self.max_user_waiting
            .unwrap_or(self.max_waiting.div_ceil(2))
    }

    /// Snapshots that one user may have.
    pub(crate) fn user_snapshots(&self) -> u32 {
        self.max_user_snapshots
            .unwrap_or(self.max_snapshots.div_ceil(8))
    }

    /// Requests that one process may have entered and not taken.
    pub(crate) fn process_waiting(&self) -> u32 {
        self.max_process_waiting
            .unwrap_or(self.max_waiting.div_ceil(4))
    }

    /// Checks every value against its range.
    ///
    /// # Errors
    /// `invalid-config`, naming the setting, its value and the range.
    pub fn check(&self) -> Result<()> {
        in_range("vocab_size", self.vocab_size, 1 << 21)?;
        in_range("page_size", self.page_size, 1024)?;
        in_range("n_pages", self.n_pages, 1 << 24)?;
        if self.host_slots > 0 {
            in_range("host_slots", self.host_slots, 1 << 24)?;
        }
        in_range("max_batch_tokens", self.max_batch_tokens, 1 << 20)?;
        in_range("prefill_chunk", self.prefill_chunk, 1 << 20)?;
        in_range("max_batch_seqs", self.max_batch_seqs, 1 << 16)?;
        in_range("max_batch_rows", self.max_batch_rows, 1 << 20)?;
        in_range("max_context", self.max_context, 1 << 24)?;
        in_range("max_contexts", self.max_contexts, 1 << 20)?;
        in_range("max_snapshots", self.max_snapshots, 1 << 20)?;
        in_range("max_user_snapshots", self.user_snapshots(), 1 << 20)?;
        in_range("max_waiting", self.max_waiting, 1 << 20)?;
        in_range("max_process_contexts", self.process_contexts(), 1 << 20)?;
        in_range("max_user_contexts", self.user_contexts(), 1 << 20)?;
        in_range("max_user_waiting", self.user_waiting(), 1 << 20)?;
        in_range("max_late_rows", self.max_late_rows, 1 << 16)?;
        in_range("max_process_waiting", self.process_waiting(), 1 << 20)?;
        match self
            .end_tokens
            .iter()
            .find(|&&token| token >= self.vocab_size)
        {
            None => Ok(()),
            Some(token) => Err(Error::with_values(
                ErrorCode::InvalidConfig,
                format!(
                    "end_tokens holds {token}, and ids of {} end below {}; give ids of the vocabulary",
                    self.model, self.vocab_size
                ),
                &[
                    ("token", u64::from(*token)),
                    ("vocab_size", u64::from(self.vocab_size)),
                ],
            )),
        }
    }
}

fn in_range(name: &str, value: u32, most: u32) -> Result<()> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::with_values(
        ErrorCode::InvalidConfig,
        format!("{name} = {value} is out of range; give 1 to {most}"),
        &[("value", u64::from(value)), ("most", u64::from(most))],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_checked() {
        let good = EngineConfig::new("m", 100);
        assert_eq!(good.check(), Ok(()));
        type Spoil = fn(&mut EngineConfig);
        let spoil: [(&str, Spoil); 20] = [
            ("vocab_size", |c| c.vocab_size = 0),
            ("vocab_size", |c| c.vocab_size = (1 << 21) + 1),
            ("page_size", |c| c.page_size = 0),
            ("n_pages", |c| c.n_pages = 0),
            ("host_slots", |c| c.host_slots = (1 << 24) + 1),
            ("max_batch_tokens", |c| c.max_batch_tokens = 0),
            ("prefill_chunk", |c| c.prefill_chunk = 0),
            ("max_batch_seqs", |c| c.max_batch_seqs = 0),
            ("max_batch_rows", |c| c.max_batch_rows = 0),
            ("max_context", |c| c.max_context = u32::MAX),
            ("max_contexts", |c| c.max_contexts = 0),
            ("max_snapshots", |c| c.max_snapshots = 0),
            ("max_user_snapshots", |c| c.max_user_snapshots = Some(0)),
            ("max_waiting", |c| c.max_waiting = 0),
            ("max_process_contexts", |c| c.max_process_contexts = Some(0)),
            ("max_user_contexts", |c| c.max_user_contexts = Some(0)),
            ("max_user_waiting", |c| c.max_user_waiting = Some(0)),
            ("max_process_waiting", |c| c.max_process_waiting = Some(0)),
            ("max_late_rows", |c| c.max_late_rows = 0),
            ("end_tokens", |c| c.end_tokens = vec![100]),
        ];
        for (name, spoil) in spoil {
            let mut config = good.clone();
            spoil(&mut config);
            let error = config.check().unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidConfig);
            assert!(error.message.contains(name), "{}", error.message);
        }
    }
}
