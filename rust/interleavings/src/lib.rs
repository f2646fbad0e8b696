//! Files of `pie-host` in every order in which their threads can run: the very files, on the primitives of a model
//! checker, which tries all schedules (with up to three preemptions) and fails where all threads wait.

#[cfg(test)]
#[path = "../../host/src/model/inbox.rs"]
mod inbox;
#[cfg(test)]
mod inbox_tests;
#[cfg(test)]
mod sync;
