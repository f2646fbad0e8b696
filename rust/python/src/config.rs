//! Settings from Python values, and what there is to know of them.

use std::collections::BTreeMap;

use pie_core::Capabilities;
use pie_host::{
    EngineConfig, Error, ErrorCode, FilesConfig, HostConfig, Limits, McpConfig, McpServerConfig,
    NetworkConfig, Setting, SnapshotConfig, Value,
};
use pie_server::ServerConfig;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyMapping, PyTuple};

use crate::boundary::raise;

/// What a Python mapping gives: values of settings by name.
pub(crate) type SettingValues<'py> = Option<Bound<'py, PyMapping>>;

/// Sets by `set` what is given of a section.
///
/// # Errors
/// `invalid-config` for a name that is no setting, a value of another kind, and one out of its range.
pub(crate) fn apply(
    py: Python<'_>,
    section: &str,
    given: &SettingValues<'_>,
    mut set: impl FnMut(&str, Value) -> Result<(), Error>,
) -> PyResult<()> {
    let Some(given) = given else {
        return Ok(());
    };
    for item in given.items()? {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        let value = read(section, &name, &value)?;
        set(&name, value).map_err(|error| raise(py, error))?;
    }
    Ok(())
}

/// What a driver serves, with the defaults for what is not given.
///
/// # Errors
/// As [`apply`].
pub(crate) fn capabilities(py: Python<'_>, given: &SettingValues<'_>) -> PyResult<Capabilities> {
    let mut capabilities = Capabilities::default();
    apply(py, "driver", given, |name, value| {
        capabilities.set(name, value)
    })?;
    Ok(capabilities)
}

/// What a launch lowers, by name.
///
/// # Errors
/// `invalid-config` for a value of no kind; the launch itself checks names and ranges.
pub(crate) fn launch_limits(
    py: Python<'_>,
    given: &SettingValues<'_>,
) -> PyResult<BTreeMap<String, Value>> {
    let mut limits = BTreeMap::new();
    apply(py, "limits", given, |name, value| {
        limits.insert(name.to_owned(), value);
        Ok(())
    })?;
    Ok(limits)
}

/// The MCP servers that are given, by name.
///
/// # Errors
/// As [`apply`].
pub(crate) fn mcp_servers(
    py: Python<'_>,
    given: BTreeMap<String, Bound<'_, PyMapping>>,
) -> PyResult<BTreeMap<String, McpServerConfig>> {
    let mut servers = BTreeMap::new();
    for (name, values) in given {
        let mut server = McpServerConfig::default();
        apply(py, "mcp", &Some(values), |name, value| {
            server.set(name, value)
        })?;
        servers.insert(name, server);
    }
    Ok(servers)
}

/// Sets a value of the section `runtime`, which several tables make up.
///
/// # Errors
/// `invalid-config`.
pub(crate) fn set_runtime(config: &mut HostConfig, name: &str, value: Value) -> Result<(), Error> {
    let is_of = |settings: Vec<Setting>| settings.iter().any(|setting| setting.name == name);
    if is_of(NetworkConfig::settings()) {
        config.network.set(name, value)
    } else if is_of(McpConfig::settings()) {
        config.mcp.set(name, value)
    } else {
        config.files.set(name, value)
    }
}

/// Whole numbers stay whole: a float is a time.
fn read(section: &str, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Unlimited);
    }
    if value.is_instance_of::<PyBool>() {
        return value.extract().map(Value::Flag);
    }
    if let Ok(number) = value.extract() {
        return Ok(Value::Integer(number));
    }
    if let Ok(seconds) = value.extract() {
        return Ok(Value::Seconds(seconds));
    }
    if let Ok(text) = value.extract() {
        return Ok(Value::Text(text));
    }
    if let Ok(texts) = value.extract() {
        return Ok(Value::Texts(texts));
    }
    let message = format!(
        "{section}.{name} = {} is not a value of a setting; give a number, true or false, a text or a list of texts",
        value.repr()?
    );
    Err(raise(
        value.py(),
        Error::new(ErrorCode::InvalidConfig, message),
    ))
}

/// A value as Python has it.
pub(crate) fn written(py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Integer(number) => number.into_py_any(py),
        Value::Seconds(seconds) => seconds.into_py_any(py),
        Value::Flag(flag) => flag.into_py_any(py),
        Value::Text(text) => text.into_py_any(py),
        Value::Texts(texts) => PyTuple::new(py, texts)?.into_py_any(py),
        Value::Unlimited => Ok(py.None()),
    }
}

/// What there is to know of a setting; see the stub.
#[pyclass(name = "Setting", module = "pie._engine", frozen, get_all)]
pub(crate) struct PySetting {
    section: &'static str,
    name: &'static str,
    description: String,
    kind: &'static str,
    choices: Vec<&'static str>,
    default: Py<PyAny>,
    low: Py<PyAny>,
    high: Py<PyAny>,
    optional: bool,
}

impl PySetting {
    fn new(py: Python<'_>, setting: Setting) -> PyResult<Self> {
        let (low, high) = setting
            .range
            .unwrap_or((Value::Unlimited, Value::Unlimited));
        Ok(Self {
            section: setting.section,
            name: setting.name,
            description: setting.description,
            kind: setting.kind.name(),
            choices: setting.kind.words().to_vec(),
            default: written(py, setting.default)?,
            low: written(py, low)?,
            high: written(py, high)?,
            optional: setting.optional,
        })
    }
}

/// Every setting of the engine by section; see the stub.
#[pyfunction]
pub(crate) fn settings(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let sections = PyDict::new(py);
    for (section, settings) in [
        ("engine", HostConfig::settings()),
        ("limits", Limits::settings()),
        (
            "runtime",
            [
                FilesConfig::settings(),
                NetworkConfig::settings(),
                McpConfig::settings(),
            ]
            .concat(),
        ),
        ("snapshots", SnapshotConfig::settings()),
        ("server", ServerConfig::section()),
        ("model", EngineConfig::settings()),
        ("mcp", McpServerConfig::settings()),
        ("driver", Capabilities::settings()),
    ] {
        let settings = settings.into_iter();
        let settings: PyResult<Vec<PySetting>> = settings
            .map(|setting| PySetting::new(py, setting))
            .collect();
        sections.set_item(section, settings?)?;
    }
    Ok(sections)
}
