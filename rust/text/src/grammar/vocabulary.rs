//! The vocabulary of a tokenizer as the grammar engine walks it: a tree of the bytes of all tokens, built once a model.

use std::fmt;
use std::sync::Arc;

use llguidance::api::ParserLimits;
use llguidance::toktrie::{INVALID_TOKEN, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};
use llguidance::{ParserFactory, toktrie::InferenceCapabilities};

use crate::caught::caught;
use crate::error::{Error, Result};
use crate::tokenizer::{Fence, Tokenizer};

/// The most states of the lexer of one text: one to two thousand bytes each.
pub(super) const MAX_LEXER_STATES: usize = 20_000;

/// How much a grammar may take to compile and to match.
fn limits() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 2_000,
        // 50 thousand a millisecond.
        initial_lexer_fuel: 1_000_000,
        step_lexer_fuel: 200_000,
        step_max_items: 50_000,
        max_lexer_states: MAX_LEXER_STATES,
        max_grammar_size: 200_000,
        precompute_large_lexemes: false,
        verbose_errors: false,
    }
}

/// The vocabulary of a tokenizer, which grammars are compiled for.
pub struct Vocabulary {
    factory: ParserFactory,
    tokenizer: Arc<Tokenizer>,
    /// Pairs of tokens with the same bytes: the first stands in the tree, the second for the same.
    twins: Vec<(TokenId, TokenId)>,
    n_bytes: usize,
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary")
            .field("n_tokens", &self.n_tokens())
            .finish_non_exhaustive()
    }
}

impl Vocabulary {
    /// Builds the tree of a tokenizer's tokens: about a second for a quarter of a million of them. No text becomes one
    /// of `control`, nor one that the checkpoint declares a control token: a grammar names them.
    ///
    /// # Errors
    /// `invalid-model` where the vocabulary cannot be made a tree.
    pub fn new(tokenizer: Arc<Tokenizer>, control: impl IntoIterator<Item = u32>) -> Result<Self> {
        let damaged = || {
            Error::Model(
                "the vocabulary of the tokenizer cannot be searched by grammars; use another one"
                    .to_owned(),
            )
        };
        let fence = tokenizer.fence_with(control)?;
        let built = caught(|| Self::build(tokenizer, fence)).ok_or_else(damaged)?;
        built.ok_or_else(damaged)
    }

    fn build(tokenizer: Arc<Tokenizer>, fence: Fence) -> Option<Self> {
        let words: Vec<Vec<u8>> = (0..tokenizer.vocab_size())
            .map(|id| {
                let bytes = tokenizer.token_bytes(id).unwrap_or_default();
                if fence.holds(id) {
                    // A token that no text is, and that a grammar names by its text.
                    [&[TokTrie::SPECIAL_TOKEN_MARKER], bytes].concat()
                } else {
                    bytes.to_vec()
                }
            })
            .collect();
        let trie = TokTrie::from(
            &TokRxInfo::new(tokenizer.vocab_size(), INVALID_TOKEN),
            &words,
        );
        let mut twins = Vec::new();
        for (id, word) in words
            .iter()
            .enumerate()
            .filter(|(_, word)| !word.is_empty())
        {
            let id = u32::try_from(id).ok()?;
            match trie.token_id(word) {
                Some(first) if first != id => twins.push((first, id)),
                _ => {}
            }
        }
        const TREE_TIMES: usize = 8;
        let n_bytes = TREE_TIMES * words.iter().map(|it| it.len() + 16).sum::<usize>();
        let environment: TokEnv = Arc::new(Environment {
            trie,
            tokenizer: tokenizer.clone(),
            fence,
        });
        let mut factory =
            ParserFactory::new(&environment, InferenceCapabilities::default(), &slices()).ok()?;
        *factory.limits_mut() = limits();
        factory.quiet();
        Some(Self {
            factory,
            tokenizer,
            twins,
            n_bytes,
        })
    }

    /// The number of tokens.
    pub fn n_tokens(&self) -> u32 {
        u32::try_from(self.factory.tok_env().tok_trie().vocab_size()).unwrap_or(u32::MAX)
    }

    /// About what it takes, in bytes.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// The tokenizer whose tokens they are.
    pub(super) fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    pub(super) fn factory(&self) -> &ParserFactory {
        &self.factory
    }

    pub(super) fn twins(&self) -> &[(TokenId, TokenId)] {
        &self.twins
    }

    /// A token as a message shows it.
    pub(super) fn shown(&self, token: TokenId) -> String {
        let trie = self.factory.tok_env().tok_trie();
        if (token as usize) < trie.vocab_size() {
            format!("{token} ({})", trie.token_dbg(token))
        } else {
            token.to_string()
        }
    }

    /// The bytes that a token writes: none for a control token.
    pub(super) fn bytes(&self, token: TokenId) -> &[u8] {
        let trie = self.factory.tok_env().tok_trie();
        if (token as usize) >= trie.vocab_size() || trie.is_special_token(token) {
            return &[];
        }
        trie.token(token)
    }
}

/// Texts that most strings of documents may go on with, whose tokens are looked up at once.
fn slices() -> Vec<String> {
    [
        r#"[^"\\\x00-\x1F\x7F]{1,10}"#,
        r#"[^"\\\x00-\x1F\x7F]{1,30}"#,
        r#"[^"\\\x00-\x1F\x7F]+"#,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// What the engine asks a tokenizer.
struct Environment {
    trie: TokTrie,
    tokenizer: Arc<Tokenizer>,
    /// The control tokens.
    fence: Fence,
}

impl Environment {
    /// The tokens of a text that stands behind others, as the tokenizer writes it; none where it adds text.
    fn canonical(&self, text: &str) -> Option<Vec<TokenId>> {
        // Some tokenizers put a space before every text. A line end before it takes that place.
        for lead in ["", "\n"] {
            let whole = format!("{lead}{text}");
            let content = 0..whole.len();
            let tokens = self.tokenizer.encode_fenced(&whole, content, &self.fence);
            let tokens = tokens.ok()?;
            let mut written = 0;
            let mut bytes = Vec::with_capacity(text.len() + 2);
            let ends: Vec<usize> = tokens
                .iter()
                .map(|&token| {
                    bytes.extend_from_slice(self.tokenizer.token_bytes(token).unwrap_or_default());
                    written = bytes.len();
                    written
                })
                .collect();
            let Some(n_lead) = bytes.strip_suffix(text.as_bytes()).map(<[u8]>::len) else {
                continue;
            };
            if n_lead == 0 {
                return Some(tokens);
            }
            if !lead.is_empty()
                && let Some(at) = ends.iter().position(|&end| end == n_lead)
            {
                return tokens.get(at + 1..).map(<[TokenId]>::to_vec);
            }
        }
        None
    }
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            self.canonical(text)
                .unwrap_or_else(|| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }
}
