//! Files of `pie-host` in every order in which their threads can run: the very files, on the primitives of a model
//! checker, which tries all schedules (with up to three preemptions) and fails where all threads wait.

#[cfg(test)]
#[path = "../../host/src/model/inbox.rs"]
mod inbox;
#[cfg(test)]
mod inbox_tests;
#[cfg(test)]
mod sync;
#[cfg(test)]
#[allow(dead_code, reason = "the host uses all of it")]
#[path = "../../host/src/bus/topics.rs"]
mod topics;
#[cfg(test)]
mod topics_tests;
