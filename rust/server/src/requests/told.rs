//! What the audit tells of once for a connection: requests that come by the thousand would fill it.

use std::collections::HashSet;

/// Lines that are remembered. A connection that makes more of them begins anew.
const MAX_TOLD: usize = 1024;

/// The verbs, processes and outcomes that the audit has told of.
#[derive(Debug, Default)]
pub(super) struct Told(HashSet<(String, u64, bool)>);

impl Told {
    /// True where it was not told yet that this was done to that process, or that it failed.
    pub(super) fn is_first(&mut self, verb: &str, pid: u64, is_ok: bool) -> bool {
        if self.0.len() >= MAX_TOLD {
            self.0.clear();
        }
        self.0.insert((verb.to_owned(), pid, is_ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once() {
        let mut told = Told::default();
        for (first, verb, pid, is_ok) in [
            (true, "send", 1, true),
            (false, "send", 1, true),
            (true, "send", 1, false),
            (true, "send", 2, true),
            (true, "signal", 1, true),
            (false, "send", 1, false),
        ] {
            assert_eq!(
                told.is_first(verb, pid, is_ok),
                first,
                "{verb} {pid} {is_ok}"
            );
        }
        for pid in 0..10_000 {
            told.is_first("send", pid, false);
        }
        assert!(told.0.len() <= MAX_TOLD);
    }
}
