//! What an engine is made with. Every value is checked when the engine is made.

use std::time::Duration;

use crate::batch::{Capabilities, DUMMY_EMBEDDINGS, MAX_BATCH_TOKENS, MAX_VOCABULARY};
use crate::errors::{Error, ErrorCode, Result};
use crate::market::MICRO;

/// The most of what an engine counts.
const MAX_COUNT: u32 = 1 << 20;
/// A row of logits of the largest vocabulary that there may be.
const MAX_ROW_BYTES: u64 = (size_of::<f32>() as u64) * (MAX_VOCABULARY as u64);
/// The shortest time that a mask is waited for.
const SHORTEST: Duration = Duration::from_micros(1);
/// The longest time that a batch may be held for or shared, or a mask be waited for.
const LONGEST: Duration = Duration::from_secs(60);

crate::settings! {
    /// The configuration of the engine of one model.
    #[derive(PartialEq, Eq)]
    pub struct EngineConfig in "model" {
        /// Tokens of a batch, of all its sequences.
        max_batch_tokens "max_batch_tokens": u32 = 512, 1 => MAX_BATCH_TOKENS;
        /// Tokens of one sequence in a batch.
        prefill_chunk "prefill_chunk": u32 = 512, 1 => MAX_BATCH_TOKENS;
        /// Sequences of a batch.
        max_batch_seqs "max_batch_seqs": u32 = 256, 1 => 1 << 16;
        /// Rows of logits that forward passes may want in a batch.
        max_batch_rows "max_batch_rows": u32 = 256, 1 => MAX_BATCH_TOKENS;
        /// Contexts that may live at once.
        max_contexts "max_contexts": u32 = 4096, 1 => MAX_COUNT;
        /// Contexts of one process that may live at once; 0: a quarter of `max_contexts`.
        max_process_contexts "max_process_contexts": u32 = 0, 0 => MAX_COUNT;
        /// Contexts of one user that may live at once; 0: half of those that the other
        /// users leave of `max_contexts`.
        max_user_contexts "max_user_contexts": u32 = 0, 0 => MAX_COUNT;
        /// Snapshots that may be kept at once.
        max_snapshots "max_snapshots": u32 = 4096, 1 => MAX_COUNT;
        /// Snapshots of one user that may be kept at once; 0: an eighth of `max_snapshots`.
        max_user_snapshots "max_user_snapshots": u32 = 0, 0 => MAX_COUNT;
        /// Adapters that may have a name at once.
        max_adapters "max_adapters": u32 = 1024, 1 => MAX_COUNT;
        /// Adapters of one user that may have a name at once; 0: an eighth of `max_adapters`.
        max_user_adapters "max_user_adapters": u32 = 0, 0 => MAX_COUNT;
        /// Bytes that the adapters of one user may take, those among them with which tokens of a context were computed.
        max_user_adapter_bytes "max_user_adapter_bytes": u64 = 64 << 20, 0 => 1 << 50;
        /// Requests that may be entered and not answered at once.
        max_waiting "max_waiting": u32 = 4096, 1 => MAX_COUNT;
        /// Requests of one process among them; 0: a quarter of `max_waiting`.
        max_process_waiting "max_process_waiting": u32 = 0, 0 => MAX_COUNT;
        /// Requests of one user among them; 0: half of those that the other users leave of
        /// `max_waiting`.
        max_user_waiting "max_user_waiting": u32 = 0, 0 => MAX_COUNT;
        /// Rows that may wait for token masks that come late, a quarter of them of one process. `max_late_bytes` may
        /// allow fewer.
        max_late_rows "max_late_rows": u32 = 256, 1 => 1 << 16;
        /// Rows of one user among them; 0: half of those that the other users leave.
        max_user_late_rows "max_user_late_rows": u32 = 0, 0 => 1 << 16;
        /// Bytes that the logits of these rows may take, four for each token of the vocabulary.
        max_late_bytes "max_late_bytes": u64 = 256 << 20, MAX_ROW_BYTES => 1 << 40;
        /// How long a pass of which everything is computed may wait for its token masks until it fails.
        late_mask "late_mask_s": Duration = Duration::from_secs(10), SHORTEST => LONGEST;
        /// How long a batch may wait for programs that step by themselves and are expected back.
        hold "hold_s": Duration = Duration::from_millis(2), Duration::ZERO => LONGEST;
        /// How long a batch in which a user decodes beside others may take, as estimated from those that ran; or one
        /// and a half times as long as it would if each decoded as little as the one who decodes the least, if that is
        /// longer, up to four times the step or the shortest batch. 0: any time. No result depends on it.
        shared_step "shared_step_s": Duration = Duration::from_micros(1500), Duration::ZERO => LONGEST;
        /// Whether the next token of a program that steps by itself is computed before it asks. No result depends on
        /// it.
        run_ahead "run_ahead": bool = true;
        /// Whether a pass starts behind what was computed before of its tokens; without, forks still share their
        /// pages. No result depends on it.
        prefix_cache "prefix_cache": bool = true;
    }
    beside {
        /// The name of the model.
        model: String = String::new();
        /// What the driver serves.
        driver: Capabilities = Capabilities::default();
        /// Tokens with which the model ends a text.
        end_tokens: Vec<u32> = Vec::new();
        /// What a full page of a context costs its process once, in micro-credits.
        page_price: u64 = MICRO;
        /// How long a driver may take for a batch until its requests fail. 0: any time.
        driver_timeout: Duration = Duration::from_secs(60);
        /// Names of settings in messages.
        names: SettingNames = SettingNames::default();
    }
}

/// Where users find settings whose names or units are others than those here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingNames {
    /// What gives more [`Capabilities::n_pages`].
    pub n_pages: &'static str,
    /// What gives a longer [`EngineConfig::driver_timeout`].
    pub driver_timeout: &'static str,
}

impl Default for SettingNames {
    fn default() -> Self {
        Self {
            n_pages: "n_pages",
            driver_timeout: "driver_timeout",
        }
    }
}

/// How many rows may wait for their token masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LateLimit {
    pub(crate) n_rows: u32,
    /// The setting that says so, and its value.
    pub(crate) setting: &'static str,
    pub(crate) value: u64,
}

impl LateLimit {
    /// The part of one of so many, rounded up.
    const fn part(self, divisor: u32) -> Self {
        Self {
            n_rows: self.n_rows.div_ceil(divisor),
            ..self
        }
    }
}

impl EngineConfig {
    /// The defaults for a model on a driver that serves whatever there is but batches that follow each other.
    pub fn new(model: impl Into<String>, vocab_size: u32) -> Self {
        let driver = Capabilities {
            vocab_size,
            masks: true,
            positions: true,
            adapters: true,
            media: true,
            embeddings: DUMMY_EMBEDDINGS.min(vocab_size),
            ..Capabilities::default()
        };
        Self {
            model: model.into(),
            driver,
            ..Self::default()
        }
    }

    /// The same within what the driver takes.
    pub(crate) fn within_driver(mut self) -> Self {
        let most = self.driver.max_batch_tokens;
        self.max_batch_tokens = self.max_batch_tokens.min(most);
        self.prefill_chunk = self.prefill_chunk.min(self.max_batch_tokens);
        self.max_batch_rows = self.max_batch_rows.min(most);
        self
    }

    /// The most tokens of a context, which are the positions that the model knows.
    pub const fn max_context(&self) -> u32 {
        self.driver.max_positions
    }

    /// Contexts that one process may have.
    pub(crate) const fn process_contexts(&self) -> u32 {
        part(self.max_process_contexts, self.max_contexts, 4)
    }

    /// Contexts that one user may have while others have so many.
    pub(crate) fn user_contexts(&self, of_others: usize) -> u32 {
        share(self.max_user_contexts, self.max_contexts, of_others)
    }

    /// Requests that one user may have entered and not taken while others have so many.
    pub(crate) fn user_waiting(&self, of_others: usize) -> u32 {
        share(self.max_user_waiting, self.max_waiting, of_others)
    }

    /// Snapshots that one user may have.
    pub(crate) const fn user_snapshots(&self) -> u32 {
        part(self.max_user_snapshots, self.max_snapshots, 8)
    }

    /// Adapters of one user that may have a name.
    pub const fn user_adapters(&self) -> u32 {
        part(self.max_user_adapters, self.max_adapters, 8)
    }

    /// Bytes of a row of logits.
    pub(crate) const fn row_bytes(&self) -> u64 {
        size_of::<f32>() as u64 * self.driver.vocab_size as u64
    }

    /// Rows that may wait for their token masks, and what sets that.
    pub(crate) fn late_rows(&self) -> LateLimit {
        let by_bytes = u32::try_from(self.max_late_bytes / self.row_bytes().max(1));
        match by_bytes {
            Ok(n_rows) if n_rows < self.max_late_rows => LateLimit {
                n_rows,
                setting: "max_late_bytes",
                value: self.max_late_bytes,
            },
            _ => LateLimit {
                n_rows: self.max_late_rows,
                setting: "max_late_rows",
                value: u64::from(self.max_late_rows),
            },
        }
    }

    /// Those of one user among them while others have so many.
    pub(crate) fn user_late_rows(&self, of_others: usize) -> LateLimit {
        let (given, all) = (self.max_user_late_rows, self.late_rows());
        if given == 0 {
            return LateLimit {
                n_rows: share(0, all.n_rows, of_others),
                ..all
            };
        }
        LateLimit {
            n_rows: given,
            setting: "max_user_late_rows",
            value: u64::from(given),
        }
    }

    /// Those of one process among them.
    pub(crate) fn process_late_rows(&self) -> LateLimit {
        self.late_rows().part(4)
    }

    /// Requests that one process may have entered and not taken.
    pub(crate) const fn process_waiting(&self) -> u32 {
        part(self.max_process_waiting, self.max_waiting, 4)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// `invalid-config`, naming the setting, its value and the range.
    pub fn check(&self) -> Result<()> {
        self.check_settings()?;
        self.driver.check_settings()?;
        let (vocab_size, embeddings) = (self.driver.vocab_size, self.driver.embeddings);
        if embeddings > vocab_size {
            return Err(Error::with_values(
                ErrorCode::InvalidConfig,
                format!(
                    "driver.embeddings is {embeddings}, and a row of logits has room for {vocab_size} values; give 0 \
                     where the hidden state does not fit"
                ),
                &[
                    ("embeddings", u64::from(embeddings)),
                    ("vocab_size", u64::from(vocab_size)),
                ],
            ));
        }
        match self.end_tokens.iter().find(|&&token| token >= vocab_size) {
            None => Ok(()),
            Some(token) => Err(Error::with_values(
                ErrorCode::InvalidConfig,
                format!(
                    "end_tokens holds {token}, and ids of {} end below {}; give ids of the vocabulary",
                    self.model, vocab_size
                ),
                &[
                    ("token", u64::from(*token)),
                    ("vocab_size", u64::from(vocab_size)),
                ],
            )),
        }
    }
}

/// A time as the core counts it.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What is given, or a part of the whole, rounded up, where nothing is.
const fn part(given: u32, whole: u32, divisor: u32) -> u32 {
    if given > 0 {
        given
    } else {
        whole.div_ceil(divisor)
    }
}

/// What is given or, where nothing is, half of what others leave of the whole, rounded up: one or two who take all that
/// they may leave something to the next. It is one at least, so that whoever finds the whole taken is told that.
fn share(given: u32, whole: u32, of_others: usize) -> u32 {
    if given > 0 {
        return given;
    }
    let of_others = u32::try_from(of_others).unwrap_or(u32::MAX);
    whole.saturating_sub(of_others).div_ceil(2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Kind, Setting, Value};

    /// What is just outside of the range of a number or a time.
    fn outside(setting: &Setting) -> Vec<Value> {
        match &setting.range {
            Some((Value::Integer(low), Value::Integer(high))) => {
                let (below, above) = (low.checked_sub(1), high.checked_add(1));
                [below, above]
                    .into_iter()
                    .flatten()
                    .map(Value::Integer)
                    .collect()
            }
            Some((Value::Seconds(low), Value::Seconds(high))) => vec![
                Value::Seconds(low - 1e-7),
                Value::Seconds(high + 1e-7),
                Value::Seconds(f64::NAN),
            ],
            _ => Vec::new(),
        }
    }

    #[test]
    fn every_setting_is_checked() {
        let good = EngineConfig::new("m", 100);
        assert_eq!(good.check(), Ok(()));
        for setting in EngineConfig::settings() {
            let set = |value: &Value| {
                let mut config = good.clone();
                config
                    .set(setting.name, value.clone())
                    .and_then(|()| config.check())
            };
            let outside = outside(&setting);
            assert_eq!(
                outside.is_empty(),
                setting.kind == Kind::Flag,
                "{setting:?}"
            );
            for value in outside {
                let error = set(&value).unwrap_err();
                assert_eq!(error.code, ErrorCode::InvalidConfig);
                let named = format!("{}.{} = {value} is outside", setting.section, setting.name);
                assert!(error.message.starts_with(&named), "{}", error.message);
            }
            if let Some((low, high)) = &setting.range {
                assert_eq!((set(low), set(high)), (Ok(()), Ok(())), "{setting:?}");
            }
        }
    }

    #[test]
    fn what_was_put_into_fields_is_checked_too() {
        type Spoil = fn(&mut EngineConfig);
        let spoil: [(&str, Spoil); 5] = [
            ("model.prefill_chunk = 0", |c| c.prefill_chunk = 0),
            ("model.hold_s = 61", |c| c.hold = Duration::from_secs(61)),
            ("driver.n_pages = 0", |c| c.driver.n_pages = 0),
            ("end_tokens holds 100", |c| c.end_tokens = vec![100]),
            ("driver.embeddings is 101", |c| c.driver.embeddings = 101),
        ];
        for (message, spoil) in spoil {
            let mut config = EngineConfig::new("m", 100);
            spoil(&mut config);
            let error = config.check().unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidConfig);
            assert!(error.message.starts_with(message), "{}", error.message);
        }
    }

    #[test]
    fn rows_wait_for_masks_as_far_as_their_bytes_may() {
        let mut config = EngineConfig {
            max_late_rows: 9,
            ..EngineConfig::new("m", 1 << 20)
        };
        let rows = |config: &EngineConfig| {
            let (all, user) = (config.late_rows(), config.user_late_rows(0));
            let process = config.process_late_rows();
            (
                all.setting,
                all.n_rows,
                (user.setting, user.n_rows),
                process.n_rows,
            )
        };
        assert_eq!(rows(&config), ("max_late_rows", 9, ("max_late_rows", 5), 3));
        config.max_late_bytes = (36 << 20) - 1;
        assert_eq!(
            rows(&config),
            ("max_late_bytes", 8, ("max_late_bytes", 4), 2)
        );
        assert_eq!(config.user_late_rows(4).n_rows, 2);
        config.max_user_late_rows = 7;
        assert_eq!(
            rows(&config),
            ("max_late_bytes", 8, ("max_user_late_rows", 7), 2)
        );
    }

    #[test]
    fn parts_that_are_not_given_are_parts_of_the_whole() {
        let config = EngineConfig {
            max_contexts: 9,
            max_user_contexts: 7,
            ..EngineConfig::new("m", 100)
        };
        assert_eq!((config.process_contexts(), config.user_contexts(8)), (3, 7));
        // Half of what others leave: of 4096 first 2048, then 1024, and so on.
        let halves = [0, 2048, 3072, 4095, 4096, 5000].map(|n| config.user_waiting(n));
        assert_eq!(halves, [2048, 1024, 512, 1, 1, 1]);
    }

    #[test]
    fn batches_are_within_what_the_driver_takes() {
        let mut config = EngineConfig::new("m", 100);
        config.driver.max_batch_tokens = 5;
        let within = config.within_driver();
        let limits = (
            within.max_batch_tokens,
            within.prefill_chunk,
            within.max_batch_rows,
        );
        assert_eq!(limits, (5, 5, 5));
    }
}
