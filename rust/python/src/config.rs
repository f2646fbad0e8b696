//! Settings from Python keywords, and what there is to know of them.

use std::collections::BTreeMap;

use pie_host::{Error, ErrorCode, Limits, Setting, Value};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use crate::boundary::raise;

/// The defaults with what `given` sets.
///
/// # Errors
/// `invalid-config` for a name that is not a limit, or a value of another kind.
pub(crate) fn limits(given: Option<&Bound<'_, PyDict>>) -> PyResult<Limits> {
    let mut limits = Limits::default();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        limits
            .set(&name, number(&name, &value)?)
            .map_err(|error| raise(value.py(), error))?;
    }
    Ok(limits)
}

/// What a launch lowers, by name.
///
/// # Errors
/// `invalid-config` for a value of another kind; the launch itself checks names and ranges.
pub(crate) fn launch_limits(
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<BTreeMap<String, Value>> {
    let mut limits = BTreeMap::new();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        let value = number(&name, &value)?;
        limits.insert(name, value);
    }
    Ok(limits)
}

/// Whole numbers stay whole: a float is a time.
fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Unlimited);
    }
    let is_bool = value.is_instance_of::<PyBool>();
    if let Some(number) = value.extract().ok().filter(|_| !is_bool) {
        return Ok(Value::Integer(number));
    }
    if let Some(seconds) = value.extract().ok().filter(|_| !is_bool) {
        return Ok(Value::Seconds(seconds));
    }
    let message = format!(
        "limits.{name} = {} is no number that is not negative",
        value.repr()?
    );
    Err(raise(
        value.py(),
        Error::new(ErrorCode::InvalidConfig, message),
    ))
}

/// What there is to know of a setting; see the stub.
#[pyclass(name = "Setting", module = "pie._engine", frozen, get_all)]
pub(crate) struct PySetting {
    name: &'static str,
    description: String,
    default: Py<PyAny>,
    low: Py<PyAny>,
    high: Py<PyAny>,
    optional: bool,
}

impl PySetting {
    fn new(py: Python<'_>, setting: Setting) -> PyResult<Self> {
        let value = |value| match value {
            Value::Integer(number) => number.into_py_any(py),
            Value::Seconds(seconds) => seconds.into_py_any(py),
            Value::Unlimited => Ok(py.None()),
        };
        Ok(Self {
            name: setting.name,
            description: setting.description,
            default: value(setting.default)?,
            low: value(setting.range.0)?,
            high: value(setting.range.1)?,
            optional: setting.optional,
        })
    }
}

/// Every limit; see the stub.
#[pyfunction]
pub(crate) fn limit_settings(py: Python<'_>) -> PyResult<Vec<PySetting>> {
    Limits::settings()
        .into_iter()
        .map(|setting| PySetting::new(py, setting))
        .collect()
}
