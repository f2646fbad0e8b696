//! Settings from Python keywords.

use std::time::Duration;

use pie_host::{Error, ErrorCode, Limits};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::boundary::{duration, raise};

/// The defaults with what `given` sets.
///
/// # Errors
/// `invalid-config` for a name that is no limit; `TypeError` or `OverflowError` for a value of another kind.
pub(crate) fn limits(given: Option<&Bound<'_, PyDict>>) -> PyResult<Limits> {
    let mut limits = Limits::default();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        match name.as_str() {
            "memory_bytes" => limits.memory_bytes = value.extract()?,
            "cpu_s" => limits.cpu = time(&name, &value)?,
            "wall_s" => limits.wall = time(&name, &value)?,
            "resources" => limits.resources = value.extract()?,
            "message_bytes" => limits.message_bytes = value.extract()?,
            "queue_events" => limits.queue_events = value.extract()?,
            "queue_bytes" => limits.queue_bytes = value.extract()?,
            "source_bytes" => limits.source_bytes = value.extract()?,
            "component_bytes" => limits.component_bytes = value.extract()?,
            _ => {
                let known = "memory_bytes, cpu_s, wall_s, resources, message_bytes, queue_events, queue_bytes, source_bytes, component_bytes";
                let message = format!("there is no limit named {name:?}; there are {known}");
                return Err(raise(
                    value.py(),
                    Error::new(ErrorCode::InvalidConfig, message),
                ));
            }
        }
    }
    Ok(limits)
}

fn time(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Duration>> {
    let seconds: Option<f64> = value.extract()?;
    seconds
        .map(|seconds| duration(value.py(), name, seconds))
        .transpose()
}
