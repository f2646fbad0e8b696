//! The sampler, for whoever tests one of a device against it.

use pie_core::masks;
use pie_core::sampling::{Key, Params, Scratch, sample_many};
use pie_host::{Error, ErrorCode};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::boundary::detached;

/// Temperature, top-k, top-p and min-p, as in `row_sampler`.
type Filters = (f32, u32, f32, f32);

/// The most draws of one call.
const MAX_DRAWS: u32 = 1 << 24;

/// Draws from a row; see the stub.
#[pyfunction]
#[pyo3(signature = (logits, sampler, mask, *, seed, position, slot=0, n_draws=1))]
#[allow(
    clippy::too_many_arguments,
    reason = "each is a word of the arena, by its name"
)]
pub(crate) fn draw<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyAny>,
    sampler: Filters,
    mask: Vec<u32>,
    seed: u64,
    position: u32,
    slot: u32,
    n_draws: u32,
) -> PyResult<Bound<'py, PyBytes>> {
    let logits = PyBuffer::<f32>::get(logits)?.to_vec(py)?;
    let (temperature, top_k, top_p, min_p) = sampler;
    let params = Params {
        temperature,
        top_k,
        top_p,
        min_p,
    };
    let key = Key {
        seed,
        position,
        slot,
        draw: 0,
    };
    let drawn = detached(py, || {
        masks::check(&mask, logits.len() as u32)
            .map_err(|error| Error::new(ErrorCode::InvalidArgument, error.message))?;
        if n_draws > MAX_DRAWS {
            let message = format!("{n_draws} draws are too many; ask for at most {MAX_DRAWS}");
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        let mut drawn = Vec::with_capacity(n_draws as usize);
        let mut scratch = Scratch::default();
        let faults = sample_many(
            &logits,
            &params,
            &mask,
            key,
            n_draws,
            &mut scratch,
            &mut drawn,
        );
        faults.map_err(|fault| {
            let message = format!("nothing can be drawn from the row: {fault:?}");
            Error::new(ErrorCode::InvalidArgument, message)
        })?;
        Ok(drawn)
    })?;
    let bytes: Vec<u8> = drawn.iter().flat_map(|token| token.to_ne_bytes()).collect();
    Ok(PyBytes::new(py, &bytes))
}
