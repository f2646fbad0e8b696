//! A script for the dummy driver: what it says to what it reads.

use std::fmt;

/// A reply to a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule answers a text that contains this; an empty pattern answers every text.
    pub pattern: String,
    /// The tokens of the reply; the end token follows by itself.
    pub reply: Vec<u32>,
}

/// Turns tokens into the text that patterns are looked for in.
pub type Decode = Box<dyn Fn(&[u32]) -> String + Send>;

/// Rules, of which the one answers whose pattern occurs last in the text; among equals the first.
///
/// The script keeps no state: how much of a reply was given is read off the tokens themselves, so that forks, retries
/// and truncations go on where they stand. A text that no rule answers gets the end token.
pub struct Script {
    rules: Vec<Rule>,
    end_token: u32,
    decode: Decode,
}

impl fmt::Debug for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Script")
            .field("rules", &self.rules)
            .field("end_token", &self.end_token)
            .finish_non_exhaustive()
    }
}

impl Script {
    /// A script.
    pub fn new(rules: Vec<Rule>, end_token: u32, decode: Decode) -> Self {
        Self {
            rules,
            end_token,
            decode,
        }
    }

    /// The token that follows these.
    pub fn next_token(&self, tokens: &[u32]) -> u32 {
        // The longest part of a reply that stands last, after a text that this reply answers.
        let longest = self
            .rules
            .iter()
            .map(|rule| rule.reply.len())
            .max()
            .unwrap_or(0)
            .min(tokens.len());
        for n_given in (0..=longest).rev() {
            let (text, given) = tokens.split_at(tokens.len() - n_given);
            if !self.rules.iter().any(|rule| rule.reply.starts_with(given)) {
                continue;
            }
            match self.answering(text) {
                Some(rule) if rule.reply.starts_with(given) => {
                    return rule.reply.get(n_given).copied().unwrap_or(self.end_token);
                }
                _ => {}
            }
        }
        self.end_token
    }

    fn answering(&self, tokens: &[u32]) -> Option<&Rule> {
        let text = (self.decode)(tokens);
        let mut best: Option<(usize, &Rule)> = None;
        for rule in &self.rules {
            // An empty pattern is weaker than any that occurs.
            let end = if rule.pattern.is_empty() {
                Some(0)
            } else {
                text.rfind(&rule.pattern).map(|at| at + rule.pattern.len())
            };
            if let Some(end) = end
                && best.is_none_or(|(latest, _)| end > latest)
            {
                best = Some((end, rule));
            }
        }
        best.map(|(_, rule)| rule)
    }
}
