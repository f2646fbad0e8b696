//! What one process may use.

use std::time::Duration;

use crate::settings::settings;

/// The shortest and the longest time that a limit may be.
const LEAST: Duration = Duration::from_millis(1);
const MOST: Duration = Duration::from_secs(1_000_000_000);

settings! {
    /// What one process may use.
    pub struct Limits in "limits" {
        /// Bytes of memory, summed over the memories of the instance.
        memory_bytes "memory_bytes": u64 = 256 << 20, 64_u64 << 10 => 4_u64 << 30;
        /// Processor time of the program itself; none: without limit.
        cpu "cpu_s": Option<Duration> = Some(Duration::from_secs(300)), LEAST => MOST;
        /// Time from launch to end; none: without limit.
        wall "wall_s": Option<Duration> = None, LEAST => MOST;
        /// Handles held at once: contexts, generators, futures, pollables, streams.
        resources "resources": usize = 10_000, 16_usize => 10_000_000_usize;
        /// Bytes that one call may carry from the program to the host, or one message or file from the client to the program.
        message_bytes "message_bytes": usize = 8 << 20, 1_usize << 10 => 1_usize << 30;
        /// Events that wait for the client, and messages, and files, that wait for the program, before the writer waits or is refused.
        queue_events "queue_events": usize = 1024, 1_usize => 1_usize << 20;
        /// Bytes in the events that wait for the client before the program waits, and in the messages, and in the files, that wait for the
        /// program before the next one is refused.
        queue_bytes "queue_bytes": usize = 1 << 20, 1_usize => 1_usize << 30;
        /// Bytes of the files of a program that is launched from source.
        source_bytes "source_bytes": usize = 64 << 20, 1_usize => 1_usize << 30;
        /// Bytes of a component.
        component_bytes "component_bytes": usize = 256 << 20, 8_usize => 1_usize << 30;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Value;

    #[test]
    fn every_default_is_in_its_range_and_every_edge_is_the_last_that_is() {
        Limits::default().check().unwrap();
        for setting in Limits::settings() {
            let (low, high) = setting.range;
            for (value, good) in [(low, true), (high, true), (beyond(high), false)] {
                let mut limits = Limits::default();
                limits.set(setting.name, value).unwrap();
                assert_eq!(limits.check().is_ok(), good, "{} = {value}", setting.name);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (key, value, message) in [
            (
                "memory_bytes",
                Value::Integer(1),
                "limits.memory_bytes = 1 is outside 65536 to 4294967296",
            ),
            (
                "cpu_s",
                Value::Integer(0),
                "limits.cpu_s = 0 is outside 0.001 to 1000000000, and none is no limit",
            ),
        ] {
            let mut limits = Limits::default();
            limits.set(key, value).unwrap();
            assert_eq!(limits.check().unwrap_err().message, message);
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
            ("cpu_s", Value::Seconds(-1.0), "cpu_s is a time in seconds"),
            (
                "wall_s",
                Value::Seconds(f64::NAN),
                "wall_s is a time in seconds",
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
        limits.check().unwrap();
    }

    fn beyond(value: Value) -> Value {
        match value {
            Value::Integer(number) => Value::Integer(number + 1),
            Value::Seconds(seconds) => Value::Seconds(seconds * 2.0),
            Value::Unlimited => Value::Unlimited,
        }
    }
}
