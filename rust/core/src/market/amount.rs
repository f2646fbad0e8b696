//! Amounts of credits: whole millionths inside, floats where programs see them.

use crate::errors::{Error, ErrorCode, Result};

/// Micro-credits of a credit.
pub const MICRO: u64 = 1_000_000;

/// The most credits of an endowment, of a bid and of a price.
pub const MAX_CREDITS: u64 = 1_000_000_000;

/// The micro-credits of an amount in credits, rounded to the nearest. `what` names the amount in the message.
///
/// # Errors
/// `invalid-argument` for what is not a number from 0 to [`MAX_CREDITS`].
pub fn micro_credits(what: &str, credits: f64) -> Result<u64> {
    if (0.0..=MAX_CREDITS as f64).contains(&credits) {
        return Ok((credits * MICRO as f64).round() as u64);
    }
    Err(Error::new(
        ErrorCode::InvalidArgument,
        format!("{what} is {credits:?} credits; give a number from 0 to {MAX_CREDITS}"),
    ))
}

/// An amount in credits.
pub fn credits(micro: u128) -> f64 {
    micro as f64 / MICRO as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_amount_is_named() {
        for (given, shown) in [
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (-1.0, "-1.0"),
            (9_223_372_036_854_775_808.0, "9.223372036854776e18"),
            (f64::MAX, "1.7976931348623157e308"),
        ] {
            let error = micro_credits("the bid", given).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            let message = format!("the bid is {shown} credits; give a number from 0 to 1000000000");
            assert_eq!(error.message, message);
        }
    }

    #[test]
    fn amounts_are_whole_millionths() {
        for (given, micro) in [
            (0.0, 0),
            (-0.0, 0),
            (2.5, 2_500_000),
            (0.000_000_4, 0),
            (0.000_000_6, 1),
            (1e9, 1_000_000_000_000_000),
        ] {
            assert_eq!(micro_credits("it", given), Ok(micro));
        }
        assert_eq!(credits(2_500_000), 2.5);
    }
}
