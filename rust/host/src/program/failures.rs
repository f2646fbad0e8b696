//! What was found to fail: refused again at once, for a while, without another try.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use pie_core::ErrorCode;

use crate::Error;
use crate::sync::lock;

/// How long a failure is remembered.
const AGE: Duration = Duration::from_secs(600);
/// Failures that are remembered; beyond, the oldest is forgotten.
const MAX_FAILURES: usize = 1024;

/// Failures by what failed.
#[derive(Debug)]
pub(crate) struct Failures<K>(Mutex<HashMap<K, (Error, Instant)>>);

impl<K> Default for Failures<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Copy + Eq + Hash> Failures<K> {
    /// The failure of something, where it is remembered.
    pub(crate) fn get(&self, key: &K) -> Option<Error> {
        self.at(key, Instant::now())
    }

    /// Remembers a failure that says something of what failed, and would come again.
    pub(crate) fn note(&self, key: K, error: &Error) {
        if matches!(
            error.code,
            ErrorCode::InvalidProgram | ErrorCode::LimitCompile | ErrorCode::LimitProgram
        ) {
            self.note_at(key, error, Instant::now());
        }
    }

    fn at(&self, key: &K, now: Instant) -> Option<Error> {
        let mut failures = lock(&self.0);
        let (error, since) = failures.get(key)?;
        let age = now.saturating_duration_since(*since);
        if age >= AGE {
            failures.remove(key);
            return None;
        }
        let mut error = error.clone();
        if error.code == ErrorCode::LimitCompile {
            // Not when: another user may have found it.
            let most = AGE.as_secs();
            error.message +=
                &format!(" (as was found before; it is tried again after at most {most} s)");
        }
        Some(error)
    }

    fn note_at(&self, key: K, error: &Error, now: Instant) {
        let mut failures = lock(&self.0);
        if failures.len() >= MAX_FAILURES && !failures.contains_key(&key) {
            let oldest = failures.iter().min_by_key(|(_, (_, since))| *since);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                failures.remove(&oldest);
            }
        }
        failures.insert(key, (error.clone(), now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_remembered_for_a_while() {
        let (failures, start) = (Failures::default(), Instant::now());
        let error = Error::new(ErrorCode::LimitCompile, "it took too long");
        failures.note_at(1, &error, start);
        let told = failures.at(&1, start + Duration::from_secs(100)).unwrap();
        assert_eq!(told.code, ErrorCode::LimitCompile);
        assert_eq!(
            told.message,
            "it took too long (as was found before; it is tried again after at most 600 s)"
        );
        assert!(failures.at(&1, start + AGE).is_none());
        assert!(failures.at(&2, start).is_none());
    }

    #[test]
    fn what_may_not_come_again_is_not_remembered() {
        let failures = Failures::default();
        for code in [
            ErrorCode::Internal,
            ErrorCode::LimitQueue,
            ErrorCode::EngineStopped,
        ] {
            failures.note(1, &Error::new(code, ""));
            assert!(failures.get(&1).is_none());
        }
    }

    #[test]
    fn they_are_bounded() {
        let (failures, start) = (Failures::default(), Instant::now());
        let error = Error::new(ErrorCode::InvalidProgram, "");
        for n in 0..=MAX_FAILURES as u64 {
            failures.note_at(n, &error, start + Duration::from_millis(n));
        }
        let now = start + Duration::from_secs(2);
        assert!(failures.at(&0, now).is_none());
        assert!(failures.at(&1, now).is_some());
        assert_eq!(lock(&failures.0).len(), MAX_FAILURES);
    }
}
