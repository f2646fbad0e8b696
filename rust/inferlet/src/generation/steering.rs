//! What a generator asks of the program in each step: masks of its constraints, drafts of its speculator.

use std::fmt;

use crate::bindings::pie::core::generation as raw;
use crate::bindings::pie::core::masks;
use crate::constrain::Constrain;
use crate::kept;
use crate::spec::Speculator;
use crate::{Result, brle};

/// The constraints and the speculator of one generator, and what they answered for the step that is open.
#[derive(Default)]
pub(super) struct Steering {
    constraints: Vec<Box<dyn Constrain>>,
    speculator: Option<Box<dyn Speculator>>,
    /// What the step before accepted.
    accepted: Vec<u32>,
    /// What the first of the constraints answered in this step: a step that runs again asks them no more.
    masks: Vec<Vec<u32>>,
    /// How many tokens were proposed for this step; none: the speculator was not asked yet.
    n_drafted: Option<u32>,
    /// Every token since the generator was made, for a speculator alone.
    drawn: Vec<u32>,
}

impl Steering {
    /// Whether the program has a part in each step, so that the engine cannot go on alone.
    pub(super) fn is_asked(&self) -> bool {
        self.has_masks() || self.has_speculator()
    }

    /// Whether each step waits for a mask.
    pub(super) fn has_masks(&self) -> bool {
        !self.constraints.is_empty()
    }

    pub(super) fn has_speculator(&self) -> bool {
        self.speculator.is_some()
    }

    pub(super) fn constrain(&mut self, constraint: Box<dyn Constrain>) {
        self.constraints.push(constraint);
    }

    pub(super) fn speculate(&mut self, mut speculator: Box<dyn Speculator>) {
        speculator.reset();
        self.speculator = Some(speculator);
    }

    /// Hands the drafts of the open step to the generator.
    pub(super) fn propose(&mut self, generator: &raw::Generator) -> Result<()> {
        let Some(speculator) = &mut self.speculator else {
            return Ok(());
        };
        if self.n_drafted.is_none() {
            let (tokens, positions) = speculator.draft();
            if !tokens.is_empty() || !positions.is_empty() {
                generator.draft(&tokens, &positions)?;
            }
            self.n_drafted = Some(tokens.len() as u32);
        }
        Ok(())
    }

    /// What all constraints allow in this step.
    ///
    /// # Errors
    /// What a grammar in one of them could not do; `invalid-argument` for a mask of too many runs.
    pub(super) fn mask(&mut self, vocab_size: impl FnOnce() -> u32) -> Result<Vec<u32>> {
        for constraint in &mut self.constraints[self.masks.len()..] {
            let mask = kept::met_in(|| {
                let mask = constraint.step(&self.accepted);
                brle::check_runs(mask, brle::MAX_ROW).map(|()| mask.to_vec())
            })??;
            self.masks.push(mask);
        }
        match &self.masks[..] {
            [one] => Ok(one.clone()),
            several => Ok(masks::intersection(several, vocab_size())?),
        }
    }

    /// Notes what the step accepted, and tells the speculator.
    pub(super) fn take(&mut self, output: &raw::Output) {
        self.accepted.clone_from(&output.tokens);
        self.masks.clear();
        let n_drafted = self.n_drafted.take().unwrap_or(0);
        if let Some(speculator) = &mut self.speculator {
            let n_rejected = n_drafted.saturating_sub(output.speculation.accepted);
            if n_rejected > 0 {
                speculator.rollback(n_rejected);
            }
            self.drawn.extend(&output.tokens);
            speculator.accept(&output.tokens);
        }
    }

    /// Other tokens stand in place of what the last step accepted. Only where some are taken back it begins anew.
    pub(super) fn replace(&mut self, tokens: &[u32]) {
        let speculator = self.speculator.as_mut();
        if let Some(speculator) = speculator.filter(|_| tokens != self.accepted) {
            let n_before = self.accepted.len();
            self.drawn
                .truncate(self.drawn.len().saturating_sub(n_before));
            self.drawn.extend(tokens);
            if let Some(more) = tokens.strip_prefix(&self.accepted[..]) {
                speculator.accept(more);
            } else {
                speculator.reset();
                speculator.accept(&self.drawn);
            }
        }
        self.accepted = tokens.to_vec();
    }
}

impl fmt::Debug for Steering {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Steering")
            .field("n_constraints", &self.constraints.len())
            .field("has_speculator", &self.has_speculator())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::bindings::pie::core::sampling::Speculation;

    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<String>>>);

    impl Told {
        fn tell(&self, what: String) {
            self.0.lock().unwrap().push(what);
        }
    }

    impl Speculator for Told {
        fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
            (vec![], vec![])
        }

        fn accept(&mut self, accepted: &[u32]) {
            self.tell(format!("accept {accepted:?}"));
        }

        fn rollback(&mut self, n: u32) {
            self.tell(format!("rollback {n}"));
        }

        fn reset(&mut self) {
            self.tell("reset".into());
        }
    }

    fn output(tokens: &[u32], accepted: u32) -> raw::Output {
        raw::Output {
            tokens: tokens.to_vec(),
            finish: None,
            slots: Vec::new(),
            speculation: Speculation {
                drafted: accepted,
                accepted,
            },
        }
    }

    // rows: RS-157..159
    #[test]
    fn a_speculator_is_told_what_came_of_its_drafts() {
        let (told, mut steering) = (Told::default(), Steering::default());
        steering.speculate(Box::new(told.clone()));
        steering.n_drafted = Some(3);
        steering.take(&output(&[5, 9], 1));
        steering.take(&output(&[4], 0));
        // Drafts that were all met.
        steering.n_drafted = Some(1);
        steering.take(&output(&[2, 3], 1));
        // What stays needs not be said again.
        steering.replace(&[2, 3]);
        steering.replace(&[2, 3, 6]);
        steering.replace(&[7]);
        assert_eq!(
            *told.0.lock().unwrap(),
            [
                "reset",
                "rollback 2",
                "accept [5, 9]",
                "accept [4]",
                "accept [2, 3]",
                "accept [6]",
                "reset",
                "accept [5, 9, 4, 7]",
            ]
        );
        assert_eq!(steering.accepted, [7]);
    }

    struct Seen(Vec<Vec<u32>>, Vec<u32>);

    impl Constrain for Seen {
        fn step(&mut self, accepted: &[u32]) -> &[u32] {
            self.0.push(accepted.to_vec());
            assert_eq!(self.0.len() == 1, accepted.is_empty());
            &self.1
        }
    }

    // rows: RS-065..066 RS-071 RS-073
    #[test]
    fn whoever_has_a_part_in_each_step_is_asked() {
        let asked = |change: fn(&mut Steering)| {
            let mut steering = Steering::default();
            change(&mut steering);
            (steering.is_asked(), steering.has_masks())
        };
        assert_eq!(asked(|_| ()), (false, false));
        let constrain = |it: &mut Steering| it.constrain(Box::new(Seen(Vec::new(), Vec::new())));
        assert_eq!(asked(constrain), (true, true));
        let speculate = |it: &mut Steering| it.speculate(Box::new(Told::default()));
        assert_eq!(asked(speculate), (true, false));
    }

    // rows: RS-137
    #[test]
    fn a_constraint_sees_what_was_accepted_and_nothing_at_first() {
        let mut steering = Steering::default();
        steering.constrain(Box::new(Seen(Vec::new(), vec![1, 2])));
        let mut mask = || {
            let none = || unreachable!("one mask needs no vocabulary");
            let given = steering.mask(none).unwrap();
            let again = steering.mask(none).unwrap();
            steering.take(&output(&[3], 0));
            (given, again)
        };
        // A step that runs again asks no more.
        assert_eq!(mask(), (vec![1, 2], vec![1, 2]));
        assert_eq!(mask(), (vec![1, 2], vec![1, 2]));
    }
}
