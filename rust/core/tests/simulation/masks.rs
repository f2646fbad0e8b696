//! Token masks that come late.

use std::collections::HashSet;

use pie_core::{Error, ErrorCode, RequestId};
use proptest::prelude::*;

use super::driving::{Outcome, Simulation};
use super::forwards::runs;
use super::model::Awaited;
use super::ops::V;

impl Simulation {
    /// The mask of a row will be given later.
    pub fn await_mask(&mut self, request: RequestId, row: u32, mask: Option<&Vec<bool>>) {
        if let Some(mask) = mask.cloned() {
            self.awaited.push(Awaited { request, row, mask });
        }
    }

    /// Forgets the masks of requests that were taken or given up.
    pub fn forget_masks(&mut self) {
        let expected: HashSet<RequestId> = self.expected.iter().map(|(id, _)| *id).collect();
        self.awaited.retain(|it| expected.contains(&it.request));
    }

    pub fn give_mask(&mut self, which: usize, refused: bool) -> Outcome {
        self.forget_masks();
        if self.awaited.is_empty() {
            return Ok(());
        }
        let Awaited { request, row, mask } = self.awaited.swap_remove(which % self.awaited.len());
        let mask = runs(&mask);
        let is_bad = |given: Result<(), Error>, fails: bool| match given {
            Err(error) => error.code == ErrorCode::InvalidArgument,
            Ok(()) => fails,
        };
        // What has failed takes no mask.
        let fails = self.failed.contains(&request) || self.tired.contains(&request);
        if refused {
            let given = self.world.give_mask(request, row, &[V]);
            prop_assert!(is_bad(given, fails));
            prop_assert!(is_bad(self.world.give_mask(request, 99, &mask), fails));
        }
        self.world.give_mask(request, row, &mask).unwrap();
        prop_assert!(is_bad(self.world.give_mask(request, row, &mask), fails));
        Ok(())
    }

    /// Time goes by: whatever waits for masks may have waited for too long.
    pub fn tires(&mut self) {
        self.forget_masks();
        self.tired.extend(self.awaited.iter().map(|it| it.request));
    }

    /// Whatever waits for nothing but masks fails after its time, and nothing else does.
    pub fn tire(&mut self) -> Outcome {
        self.rest()?;
        self.tires();
        self.world.hang(self.config.late_mask.as_nanos() as u64);
        let awaiting: HashSet<RequestId> = self.awaited.iter().map(|it| it.request).collect();
        for request in awaiting {
            let mut expected = self.expected.iter();
            let which = expected.position(|(id, _)| *id == request).unwrap();
            let n = self.expected.len();
            self.take(which)?;
            prop_assert_eq!(self.expected.len(), n - 1, "a row waits beyond its time");
        }
        Ok(())
    }
}
