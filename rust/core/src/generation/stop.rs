//! When a token ends a generation.

/// The stop tokens of a generator, in layers: those of the model, those of the template, and those that the program
/// added.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopSet {
    /// Put in place of the model's and the template's; none: those two.
    replaced: Option<Vec<u32>>,
    template: Vec<u32>,
    added: Vec<u32>,
    ignores_end: bool,
    without_model: bool,
}

impl StopSet {
    pub(crate) fn new(template: Vec<u32>, added: Vec<u32>) -> Self {
        Self {
            template: sorted(template),
            added: sorted(added),
            ..Self::default()
        }
    }

    /// Puts tokens in place of the template's. An empty list removes the model's too.
    pub(crate) fn replace(&mut self, tokens: &[u32]) {
        self.without_model = tokens.is_empty();
        self.replaced = Some(sorted(tokens.to_vec()));
    }

    /// Keeps the model's, also where an empty list was put in place of the template's.
    pub(crate) const fn keep_model(&mut self) {
        self.without_model = false;
    }

    pub(crate) fn add(&mut self, tokens: &[u32]) {
        self.added.extend_from_slice(tokens);
        self.added = sorted(std::mem::take(&mut self.added));
    }

    /// Bytes of its lists. No list is longer than the vocabulary.
    pub(crate) fn held_bytes(&self) -> usize {
        let lists = [
            Some(&self.template),
            Some(&self.added),
            self.replaced.as_ref(),
        ];
        let n_tokens: usize = lists.into_iter().flatten().map(Vec::capacity).sum();
        n_tokens * size_of::<u32>()
    }

    /// Removes the model's and the template's stop tokens, or puts them back.
    pub(crate) const fn ignore_end(&mut self, ignore: bool) {
        self.ignores_end = ignore;
    }

    /// All of them, each once.
    pub(crate) fn tokens(&self, model: &[u32]) -> Vec<u32> {
        let template = self.replaced.as_ref().unwrap_or(&self.template);
        let all = self.added.iter().chain(template).chain(model);
        let ends = all.filter(|&&token| self.contains(token, model));
        sorted(ends.copied().collect())
    }

    /// Whether a token ends the generation. `model` are the end tokens of the model.
    pub(crate) fn contains(&self, token: u32, model: &[u32]) -> bool {
        if self.added.binary_search(&token).is_ok() {
            return true;
        }
        if self.ignores_end {
            return false;
        }
        let template = self.replaced.as_ref().unwrap_or(&self.template);
        template.binary_search(&token).is_ok() || (!self.without_model && model.contains(&token))
    }
}

/// Each token once, with room for no more: the list lives as long as its generator.
fn sorted(mut tokens: Vec<u32>) -> Vec<u32> {
    tokens.sort_unstable();
    tokens.dedup();
    tokens.shrink_to_fit();
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: RS-069..070
    #[test]
    fn layers() {
        let check = |set: &StopSet, expected: [bool; 4]| {
            // 1: of the model, 2: of the template, 3: added, 4: of nobody.
            assert_eq!(
                [1, 2, 3, 4].map(|token| set.contains(token, &[1])),
                expected,
                "{set:?}"
            );
        };
        let mut set = StopSet::new(vec![2], vec![3]);
        check(&set, [true, true, true, false]);
        set.ignore_end(true);
        check(&set, [false, false, true, false]);
        set.ignore_end(false);
        check(&set, [true, true, true, false]);
        set.replace(&[4]);
        check(&set, [true, false, true, true]);
        set.replace(&[]);
        check(&set, [false, false, true, false]);
        set.add(&[2]);
        check(&set, [false, true, true, false]);
        set.keep_model();
        check(&set, [true, true, true, false]);
    }

    // rows: RS-069..070
    #[test]
    fn tokens_are_found_in_whatever_order_they_were_given() {
        let mut set = StopSet::new(vec![9, 2, 5, 4, 3], vec![8, 1, 6]);
        set.add(&[7, 0]);
        let all = |tokens: [u32; 5], set: &StopSet| tokens.iter().all(|&it| set.contains(it, &[]));
        assert!(all([9, 2, 5, 4, 3], &set) && all([8, 1, 6, 7, 0], &set));
        assert_eq!(
            set.tokens(&[12, 11]),
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12]
        );
        set.replace(&[17, 12, 15, 14, 13]);
        assert!(all([17, 12, 15, 14, 13], &set));
    }

    #[test]
    fn a_token_that_is_given_often_is_held_once() {
        let mut set = StopSet::new(Vec::new(), vec![5; 100_000]);
        assert_eq!(set.held_bytes(), 4);
        set.add(&vec![5; 100_000]);
        set.replace(&vec![6; 100_000]);
        assert_eq!(set.held_bytes(), 8);
    }
}
