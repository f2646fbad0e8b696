//! How a token is chosen, as programs say it and as batches carry it.

use crate::errors::{Error, ErrorCode, Result};

/// How a token is chosen. Order: temperature, softmax, top-k, top-p or min-p over what is left, draw.
/// A temperature of 0 is argmax for every method; ties go to the lowest id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// The most probable token.
    Argmax,
    /// The fewest most probable tokens whose probabilities reach `p`.
    TopP {
        /// At least 0.
        temperature: f32,
        /// In (0, 1].
        p: f32,
    },
    /// The `k` most probable tokens.
    TopK {
        /// At least 0.
        temperature: f32,
        /// At least 1.
        k: u32,
    },
    /// The tokens at least `p` times as probable as the most probable one.
    MinP {
        /// At least 0.
        temperature: f32,
        /// In [0, 1].
        p: f32,
    },
    /// The `k` most probable tokens, then the nucleus of those.
    TopKTopP {
        /// At least 0.
        temperature: f32,
        /// At least 1.
        k: u32,
        /// In (0, 1].
        p: f32,
    },
    /// The whole distribution.
    Multinomial {
        /// At least 0.
        temperature: f32,
        /// Independent draws in the slot; a generator needs 1.
        draws: u32,
    },
}

/// The most independent draws from one row.
const MAX_DRAWS: u32 = 65_536;

/// A method with, if wanted, a seed of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// How a token is chosen.
    pub method: Method,
    /// Used as given, 0 included, before the seed of the generator; none: the generator's.
    pub seed: Option<u64>,
}

/// A method in the form that the sampler computes with: every filter has a value that switches it off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// 0 is argmax.
    pub temperature: f32,
    /// 0 keeps every token.
    pub top_k: u32,
    /// 1 keeps every token.
    pub top_p: f32,
    /// 0 keeps every token.
    pub min_p: f32,
}

impl Params {
    /// The most probable token.
    pub const ARGMAX: Self = Self {
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
    };

    /// Whether the most probable token is the only one that may be drawn.
    pub(super) const fn takes_best(&self) -> bool {
        self.temperature == 0.0 || self.top_k == 1
    }
}

impl Method {
    /// Checks the parameters for a generator and brings them into the sampler's form.
    ///
    /// # Errors
    /// `invalid-sampler`, naming the parameter, its value and the range.
    pub fn params(&self) -> Result<Params> {
        match self.draws() {
            1 => self.checked(),
            draws => Err(refused("draws", draws, "a generator needs 1")),
        }
    }

    /// Checks the parameters for a forward pass and brings them into the sampler's form. Returns them with the number
    /// of draws.
    ///
    /// # Errors
    /// `invalid-sampler`, naming the parameter, its value and the range.
    pub fn params_and_draws(&self) -> Result<(Params, u32)> {
        let draws = self.draws();
        if !(1..=MAX_DRAWS).contains(&draws) {
            let remedy = format!("give 1 to {MAX_DRAWS}");
            return Err(refused("draws", draws, &remedy));
        }
        Ok((self.checked()?, draws))
    }

    /// Independent draws from the row.
    pub(crate) const fn draws(&self) -> u32 {
        match *self {
            Self::Multinomial { draws, .. } => draws,
            _ => 1,
        }
    }

    fn checked(&self) -> Result<Params> {
        let params = match *self {
            Self::Argmax => return Ok(Params::ARGMAX),
            Self::TopP { temperature, p } => Params {
                temperature,
                top_p: open_p(p)?,
                ..Params::ARGMAX
            },
            Self::TopK { temperature, k } => Params {
                temperature,
                top_k: at_least_one("k", k)?,
                ..Params::ARGMAX
            },
            Self::MinP { temperature, p } => Params {
                temperature,
                min_p: closed_p(p)?,
                ..Params::ARGMAX
            },
            Self::TopKTopP { temperature, k, p } => Params {
                temperature,
                top_k: at_least_one("k", k)?,
                top_p: open_p(p)?,
                min_p: 0.0,
            },
            Self::Multinomial { temperature, .. } => Params {
                temperature,
                ..Params::ARGMAX
            },
        };
        if !(params.temperature.is_finite() && params.temperature >= 0.0) {
            return Err(refused(
                "temperature",
                params.temperature,
                "give a finite number, at least 0; 0 is argmax",
            ));
        }
        Ok(params)
    }
}

fn open_p(p: f32) -> Result<f32> {
    if p > 0.0 && p <= 1.0 {
        Ok(p)
    } else {
        Err(refused("p", p, "give a number above 0 and at most 1"))
    }
}

fn closed_p(p: f32) -> Result<f32> {
    if (0.0..=1.0).contains(&p) {
        Ok(p)
    } else {
        Err(refused("p", p, "give a number from 0 to 1"))
    }
}

fn at_least_one(name: &str, value: u32) -> Result<u32> {
    if value >= 1 {
        Ok(value)
    } else {
        Err(refused(name, value, "give at least 1"))
    }
}

fn refused(name: &str, value: impl std::fmt::Display, remedy: &str) -> Error {
    Error::new(
        ErrorCode::InvalidSampler,
        format!("sampler parameter {name} = {value} is out of range; {remedy}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: RS-113..117
    #[test]
    fn parameters_out_of_range_are_refused_by_name() {
        let nan = f32::NAN;
        let cases = [
            (
                Method::TopP {
                    temperature: -0.1,
                    p: 0.5,
                },
                "temperature = -0.1",
            ),
            (
                Method::TopP {
                    temperature: nan,
                    p: 0.5,
                },
                "temperature = NaN",
            ),
            (
                Method::TopK {
                    temperature: f32::INFINITY,
                    k: 1,
                },
                "temperature = inf",
            ),
            (
                Method::TopP {
                    temperature: 1.0,
                    p: 0.0,
                },
                "p = 0",
            ),
            (
                Method::TopP {
                    temperature: 1.0,
                    p: 1.5,
                },
                "p = 1.5",
            ),
            (
                Method::TopP {
                    temperature: 1.0,
                    p: nan,
                },
                "p = NaN",
            ),
            (
                Method::TopK {
                    temperature: 1.0,
                    k: 0,
                },
                "k = 0",
            ),
            (
                Method::MinP {
                    temperature: 1.0,
                    p: -0.5,
                },
                "p = -0.5",
            ),
            (
                Method::TopKTopP {
                    temperature: 1.0,
                    k: 0,
                    p: 0.5,
                },
                "k = 0",
            ),
            (
                Method::TopKTopP {
                    temperature: 1.0,
                    k: 5,
                    p: 2.0,
                },
                "p = 2",
            ),
            (
                Method::Multinomial {
                    temperature: 1.0,
                    draws: 2,
                },
                "draws = 2",
            ),
            (
                Method::Multinomial {
                    temperature: 1.0,
                    draws: 0,
                },
                "draws = 0",
            ),
        ];
        for (method, part) in cases {
            let error = method.params().unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidSampler);
            assert!(
                error.message.contains(part),
                "{} lacks {part}",
                error.message
            );
        }
    }

    // rows: RS-112..117
    #[test]
    fn parameters_at_the_bounds_are_taken() {
        for method in [
            Method::Argmax,
            Method::TopP {
                temperature: 0.0,
                p: 1.0,
            },
            Method::MinP {
                temperature: 1.0,
                p: 0.0,
            },
            Method::MinP {
                temperature: 1.0,
                p: 1.0,
            },
            Method::TopK {
                temperature: 1e30,
                k: u32::MAX,
            },
            Method::Multinomial {
                temperature: 1.0,
                draws: 1,
            },
        ] {
            assert!(method.params().is_ok(), "{method:?}");
        }
    }
}
