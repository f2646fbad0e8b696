//! `pie:core/masks`: masks as run lengths.

use std::sync::Arc;

use pie_core::masks as runs;
use wasmtime::component::Linker;

use super::bindings::pie::core::masks;
use super::errors::CallResult;
use super::view::view;
use crate::Error;
use crate::budget::{Charge, Purpose};
use crate::process::handles::HandleTable;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;

view! {
    /// Who pays for masks while a call works on them; errors are told through the handles.
    Masks { table: HandleTable, record: Arc<ProcessRecord> }
}

impl Masks<'_> {
    /// Pays for so many elements, runs or bytes until the call ends.
    fn charge(&self, n_bytes: usize) -> Result<Charge, Error> {
        self.record.account.charge(Purpose::Text, n_bytes as u64)
    }
}

/// Bytes of a run or an element, given and returned.
const RUN_BYTES: usize = 2 * size_of::<u32>();

impl masks::Host for Masks<'_> {
    fn shortest(&mut self, mask: Vec<u32>, len: u32) -> CallResult<Vec<u32>> {
        let _charge = self.charge(mask.len() * RUN_BYTES)?;
        Ok(runs::shortest(&mask, len)?)
    }

    fn intersection(&mut self, masks: Vec<Vec<u32>>, len: u32) -> CallResult<Vec<u32>> {
        let n_runs: usize = masks.iter().map(Vec::len).sum();
        let _charge = self.charge(n_runs * RUN_BYTES)?;
        Ok(runs::intersection(&masks, len)?)
    }

    fn allowing(&mut self, elements: Vec<u32>, len: u32) -> CallResult<Vec<u32>> {
        let _charge = self.charge(2 * elements.len() * RUN_BYTES)?;
        Ok(runs::allowing(&elements, len)?)
    }

    fn allowed(&mut self, mask: Vec<u32>, len: u32) -> CallResult<Vec<u32>> {
        let _charge = self.charge(len.min(runs::MAX_LEN) as usize * size_of::<u32>())?;
        Ok(runs::allowed(&mask, len)?)
    }

    fn pack(&mut self, mask: Vec<u32>, len: u32) -> CallResult<Vec<u8>> {
        let _charge = self.charge(len.min(runs::MAX_LEN).div_ceil(8) as usize)?;
        Ok(runs::pack(&mask, len)?)
    }

    fn unpack(&mut self, bits: Vec<u8>, len: u32) -> CallResult<Vec<u32>> {
        let _charge = self.charge(bits.len() * 8 * RUN_BYTES)?;
        Ok(runs::unpack(&bits, len)?)
    }

    fn window(&mut self, start: u32, n: u32, window: u32, sinks: u32) -> CallResult<Vec<Vec<u32>>> {
        let _charge = self.charge(n.min(runs::MAX_TOKENS) as usize * MASK_BYTES)?;
        Ok(runs::window(start, n, window, sinks)?)
    }

    fn causal(&mut self, start: u32, n: u32) -> CallResult<Vec<Vec<u32>>> {
        let _charge = self.charge(n.min(runs::MAX_TOKENS) as usize * MASK_BYTES)?;
        Ok(runs::causal(start, n)?)
    }
}

/// Bytes of a mask of a window.
const MASK_BYTES: usize = size_of::<Vec<u32>>() + 4 * RUN_BYTES;

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    masks::add_to_linker::<_, Masks<'static>>(linker, Masks::of)
}
