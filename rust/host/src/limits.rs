//! What one process may use.

use std::collections::BTreeMap;
use std::time::Duration;

use pie_core::settings::Value;
use pie_core::{ErrorCode, settings};

use crate::Error;

/// Bytes that one write to a stream, or one read from one, may carry.
pub(crate) const STREAM_BYTES: usize = 64 << 10;
/// The shortest and the longest time that a limit may be.
const LEAST: Duration = Duration::from_millis(1);
const MOST: Duration = Duration::from_secs(1_000_000_000);

settings! {
    /// What one process may use.
    pub struct Limits in "limits" {
        /// Bytes of memory, summed over the memories and the tables of the instance and what the engine holds behind
        /// its decoders.
        memory_bytes "memory_bytes": u64 = 256 << 20, 64 << 10 => 4 << 30;
        /// Processor time of the program, with the work on its files; none: without limit.
        cpu "cpu_s": Option<Duration> = Some(Duration::from_secs(300)), LEAST => MOST;
        /// Time from launch to end; none: without limit.
        wall "wall_s": Option<Duration> = None, LEAST => MOST;
        /// Time that one step of a generation, or one flush, may take while the program waits for it, its wait for a
        /// place in a batch included; none: without limit. The program gets an error and runs on. Generations that the
        /// engine runs to their end are not limited.
        pass "pass_s": Option<Duration> = None, LEAST => MOST;
        /// Calls that the program may make to the engine, waits included.
        calls "calls": u64 = 100_000_000, 100 => 1_000_000_000_000;
        /// Handles held at once: contexts, generators, futures, pollables, streams.
        resources "resources": usize = 10_000, 16 => 10_000_000;
        /// Futures held at once, which is what the tasks of one program can wait for.
        futures "futures": usize = 4096, 1 => 10_000_000;
        /// Timers held at once.
        timers "timers": usize = 1024, 1 => 10_000_000;
        /// Bytes that the program may write in its life, to its outputs and to its client.
        output_bytes "output_bytes": u64 = 1 << 30, 1 << 10 => 1 << 50;
        /// Bytes that one call may carry from the program to the host, or one message or file from the client to the
        /// program.
        message_bytes "message_bytes": usize = 8 << 20, 1 << 10 => 1 << 30;
        /// Events that wait for the client, and messages, and files, that wait for the program, before the writer waits
        /// or is refused.
        queue_events "queue_events": usize = 1024, 1 => 1 << 20;
        /// Bytes in the events that wait for the client before the program waits, and in the messages, and in the
        /// files, that wait for the program before the next one is refused.
        queue_bytes "queue_bytes": usize = 1 << 20, 1 => 1 << 30;
        /// Generations of children below a launch; 0: its program starts none.
        child_depth "child_depth": usize = 4, 0 => 64;
        /// Children that live at once below one launch, theirs included.
        children "children": usize = 64, 1 => 20_000;
        /// Children that one launch may start in all, theirs included.
        spawns "spawns": u64 = 100_000, 1 => 1_000_000_000_000;
        /// HTTP requests under way at once: each from its start until its answer was read or dropped.
        http_requests "http_requests": usize = 32, 1 => 1 << 16;
        /// Bytes of the body of one HTTP request.
        http_sent_bytes "http_sent_bytes": u64 = 64 << 20, 0 => 1 << 50;
        /// Bytes of the body of one answer to an HTTP request.
        http_received_bytes "http_received_bytes": u64 = 256 << 20, 0 => 1 << 50;
        /// Bytes of the head of an HTTP request or of its answer: the first line and all headers.
        http_header_bytes "http_header_bytes": usize = 64 << 10, 8 << 10 => 1 << 20;
        /// Time until a connection for an HTTP request stands: its name is resolved, it is made, TLS is agreed upon.
        http_connect "http_connect_s": Duration = Duration::from_secs(10), LEAST => MOST;
        /// Time that the head of the answer to an HTTP request may take once the request was sent.
        http_first_byte "http_first_byte_s": Duration = Duration::from_secs(120), LEAST => MOST;
        /// Time between two parts of the answer to an HTTP request.
        http_idle "http_idle_s": Duration = Duration::from_secs(120), LEAST => MOST;
        /// Time of an HTTP request in all, redirects and the reading of its answer included.
        http "http_s": Duration = Duration::from_secs(900), LEAST => MOST;
        /// Sessions with MCP servers that are open at once.
        mcp_sessions "mcp_sessions": usize = 16, 1 => 1 << 16;
        /// Calls of MCP servers that are under way at once.
        mcp_calls "mcp_calls": usize = 32, 1 => 1 << 16;
        /// Bytes of what one call tells an MCP server: the names and the arguments.
        mcp_sent_bytes "mcp_sent_bytes": u64 = 1 << 20, 1 << 10 => 1 << 30;
        /// Bytes of the result of one call of an MCP server, or of a list with all its pages.
        mcp_answer_bytes "mcp_answer_bytes": u64 = 8 << 20, 1 << 10 => 1 << 30;
        /// Time of one call of an MCP server, the start of the server included where it does not run.
        mcp_call "mcp_call_s": Duration = Duration::from_secs(120), LEAST => MOST;
        /// Bytes of the files of a program that is launched from source.
        source_bytes "source_bytes": usize = 64 << 20, 1 => 1 << 30;
        /// Bytes of a component.
        component_bytes "component_bytes": usize = 256 << 20, 8 => 1 << 30;
        /// Functions of a component, in all its modules.
        functions "functions": usize = 60_000, 1 => 1_000_000;
        /// Time that compiling a component may take.
        compile "compile_s": Duration = Duration::from_secs(60), Duration::from_millis(100) => Duration::from_secs(86_400);
        /// Bytes of memory that compiling a component may take.
        compile_bytes "compile_bytes": u64 = 2 << 30, 256 << 20 => 1 << 40;
    }
}

/// The limits that belong to the engine as a whole: a launch cannot set them.
const OF_ENGINE: [&str; 5] = [
    "source_bytes",
    "component_bytes",
    "functions",
    "compile_s",
    "compile_bytes",
];

impl Limits {
    /// These limits with what a launch lowers.
    ///
    /// # Errors
    /// `invalid-argument` for a name that is not a limit of a launch, a value out of its range, or one above the
    /// engine's.
    pub(crate) fn lowered(&self, changes: &BTreeMap<String, Value>) -> Result<Self, Error> {
        let invalid = |message: String| Error::new(ErrorCode::InvalidArgument, message);
        let mut lowered = self.clone();
        for (key, value) in changes {
            lowered
                .set(key, value.clone())
                .map_err(|error| invalid(error.message))?;
            if OF_ENGINE.contains(&key.as_str()) {
                return Err(invalid(format!(
                    "limits.{key} belongs to the engine; a launch cannot set it"
                )));
            }
        }
        let values = self.values().into_iter().zip(lowered.values());
        for (setting, (most, value)) in Self::settings().iter().zip(values) {
            if is_above(&value, &most) {
                return Err(invalid(format!(
                    "limits.{} = {value} is above the engine's {most}; a launch can only lower it: give at most that, or raise the engine's",
                    setting.name
                )));
            }
        }
        Ok(lowered)
    }
}

fn is_above(value: &Value, most: &Value) -> bool {
    match (value, most) {
        (_, Value::Unlimited) => false,
        (Value::Unlimited, _) => true,
        (Value::Integer(value), Value::Integer(most)) => value > most,
        (Value::Seconds(value), Value::Seconds(most)) => value > most,
        // Both are values of one setting, and no limit is of another kind.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_in_its_range_and_every_edge_is_the_last_that_is() {
        Limits::default().check_settings().unwrap();
        for setting in Limits::settings() {
            let (low, high) = setting.range.unwrap();
            let above = beyond(&high);
            for (value, good) in [(low, true), (high, true), (above, false)] {
                let set = Limits::default().set(setting.name, value.clone());
                assert_eq!(set.is_ok(), good, "{} = {value}", setting.name);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (key, value, message) in [
            (
                "memory_bytes",
                Value::Integer(1),
                "limits.memory_bytes = 1 is outside 65536 to 4294967296; give a whole number between them",
            ),
            (
                "cpu_s",
                Value::Integer(0),
                "limits.cpu_s = 0 is outside 0.001 to 1000000000; give a number of seconds between them, or none for no limit",
            ),
        ] {
            let error = Limits::default().set(key, value).unwrap_err();
            assert_eq!(error.message, message);
        }
        for (key, value, part) in [
            (
                "speed",
                Value::Integer(1),
                "no setting \"speed\" in [limits]; there are memory_bytes, cpu_s",
            ),
            (
                "resources",
                Value::Seconds(1.5),
                "resources is a whole number",
            ),
            ("resources", Value::Unlimited, "resources is a whole number"),
            (
                "cpu_s",
                Value::Seconds(-1.0),
                "limits.cpu_s = -1 is outside",
            ),
            (
                "wall_s",
                Value::Seconds(f64::NAN),
                "limits.wall_s = NaN is outside",
            ),
            (
                "cpu_s",
                Value::Flag(true),
                "cpu_s is a time in seconds, or none",
            ),
        ] {
            let error = Limits::default().set(key, value).unwrap_err();
            assert!(error.message.contains(part), "{}", error.message);
        }
    }

    #[test]
    fn no_limit_is_a_value_of_times() {
        let mut limits = Limits::default();
        limits.set("cpu_s", Value::Unlimited).unwrap();
        assert_eq!(limits.cpu, None);
        limits.check_settings().unwrap();
    }

    #[test]
    fn a_launch_only_lowers() {
        let engine = Limits::default();
        let change =
            |name: &str, value| engine.lowered(&BTreeMap::from([(name.to_owned(), value)]));
        let lowered = change("resources", Value::Integer(100)).unwrap();
        assert_eq!((lowered.resources, lowered.futures), (100, engine.futures));
        let year = change("wall_s", Value::Seconds(1e7)).unwrap();
        assert_eq!(year.wall, Some(Duration::from_secs(10_000_000)));
        for (name, value, part) in [
            (
                "resources",
                Value::Integer(20_000),
                "above the engine's 10000",
            ),
            ("cpu_s", Value::Seconds(301.0), "above the engine's 300"),
            ("cpu_s", Value::Unlimited, "above the engine's 300"),
            ("resources", Value::Integer(1), "outside 16 to 10000000"),
            ("compile_s", Value::Seconds(1.0), "belongs to the engine"),
            ("nonsense", Value::Integer(1), "there is no setting"),
        ] {
            let error = change(name, value).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            assert!(error.message.contains(part), "{}", error.message);
        }
    }

    fn beyond(value: &Value) -> Value {
        match value {
            Value::Integer(number) => Value::Integer(number + 1),
            Value::Seconds(seconds) => Value::Seconds(seconds * 2.0),
            _ => panic!("{value} has no next"),
        }
    }
}
