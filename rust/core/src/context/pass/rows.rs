//! The rows that a pass wants, and what is read of them.

use crate::batch::{Read, Reads};
use crate::generation::{RowProbe, Template};
use crate::sampling::Reading;

/// The rows that a pass wants: in a flush none, in a generation the one behind its last token.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) reads: Reads,
    /// What makes them, where the pass is a generation that has not ended.
    pub(super) template: Option<Template>,
    /// The row of each probe, and what they read once the pass is answered.
    rows_probed: Vec<u32>,
    pub(super) readings: Vec<Reading>,
}

impl Rows {
    /// The last of them.
    pub(super) fn last(&self) -> Option<&Read> {
        self.reads.last()
    }

    /// A template makes those that are wanted, and those that follow; `probes` read these alone.
    pub(super) fn make_by(&mut self, template: Template, probes: &[RowProbe]) {
        self.rows_probed = template.rows_probed(probes).collect();
        self.template = Some(template);
    }

    /// The row behind the token at `slot` is wanted next, drawn as the one before. False: there was none.
    pub(super) fn follow(&mut self, slot: u32) -> bool {
        let Some(template) = &self.template else {
            return false;
        };
        if !self.reads.follow(slot) {
            self.rows_probed = template.rows_probed(&[]).collect();
            self.reads = template.reads(slot, 0, &[]);
        }
        true
    }

    /// The pass is answered: what its probes read, in their order, is told with that.
    pub(super) fn read_probes(&mut self) {
        if self.rows_probed.is_empty() {
            return;
        }
        let rows = std::mem::take(&mut self.reads).into_outputs();
        let mut rows: Vec<_> = rows
            .into_iter()
            .map(|row| row.readings.into_iter())
            .collect();
        let probed = std::mem::take(&mut self.rows_probed).into_iter();
        self.readings = probed
            .filter_map(|row| rows.get_mut(row as usize)?.next())
            .collect();
    }

    /// Those of what runs ahead of the answer. What was read for the answer stays with it.
    pub(super) fn split(&mut self) -> Self {
        Self {
            reads: std::mem::take(&mut self.reads),
            template: self.template.take(),
            rows_probed: std::mem::take(&mut self.rows_probed),
            readings: Vec::new(),
        }
    }
}
