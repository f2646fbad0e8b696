//! `Pie.toml`: what a program is called, what it is built from and what it takes.

use pie_core::ErrorCode;
use serde::Serialize;
use toml::de::DeTable;

use super::fields::{Document, Fields, did_you_mean, shown};
use super::parameters::{Kind, Parameters};
use super::source::is_relative;
use crate::Error;

/// The longest manifest.
const MAX_MANIFEST_BYTES: usize = 64 << 10;
/// The longest name and version.
const MAX_NAME_BYTES: usize = 64;
const MAX_VERSION_BYTES: usize = 32;
const LANGUAGES: &[&str] = &["rust", "python", "javascript", "typescript"];
/// What answers a request by HTTP: an instance of its own, or one that stays.
const INSTANCES: &[&str] = &["request", "shared"];

/// A manifest that fits the schema.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Manifest {
    /// `[package]`.
    pub package: Package,
    /// `[program]`.
    pub program: Entry,
    /// `[parameters]`; none where there is no such table: the program takes any input.
    pub parameters: Option<Parameters>,
    /// `[http]`; none where there is no such table: the program serves no requests by HTTP.
    pub http: Option<HttpService>,
    /// `[dependencies]`.
    pub dependencies: Dependencies,
}

/// How a program serves requests by HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HttpService {
    /// What answers a request.
    pub instance: HttpInstance,
    /// Anybody may ask, and not only the user who has installed it.
    pub public: bool,
}

/// What answers a request by HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HttpInstance {
    /// An instance of its own, which begins and ends with it.
    #[default]
    Request,
    /// One that stays, and answers all of them.
    Shared,
}

/// What the program is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Package {
    /// By which it is installed.
    pub name: String,
    /// Of the program.
    pub version: String,
    /// One line for people.
    pub description: Option<String>,
    /// Who wrote it.
    pub authors: Vec<String>,
}

/// Where the program begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// `rust`, `python`, `javascript` or `typescript`.
    pub language: Option<String>,
    /// The path of the file that holds `main`, relative to the project.
    pub entry: Option<String>,
}

/// What is bundled with the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dependencies {
    /// Requirements, as pip reads them.
    pub python: Vec<String>,
}

impl Manifest {
    /// Reads the text of a manifest; `file` names it in messages.
    ///
    /// # Errors
    /// `invalid-manifest`, naming file, line, field, value and what is expected.
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        if text.len() > MAX_MANIFEST_BYTES {
            let message = format!(
                "{file} has {} bytes, more than the {MAX_MANIFEST_BYTES} of a manifest; shorten it",
                text.len()
            );
            return Err(Error::new(ErrorCode::InvalidManifest, message));
        }
        let document = Document { file, text };
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            document.fault(at, format!("this is not TOML: {}", error.message()))
        })?;
        let top = Fields::new(document, table.get_ref());
        top.only(&["package", "program", "parameters", "http", "dependencies"])?;
        let Some(package) = top.table("package")? else {
            let message = format!(
                "{file}: the table [package] is missing; add it with name = \"my-program\" and version = \"0.1.0\""
            );
            return Err(Error::new(ErrorCode::InvalidManifest, message));
        };
        Ok(Self {
            package: read_package(&package)?,
            program: top
                .table("program")?
                .map(|fields| read_entry(&fields))
                .transpose()?
                .unwrap_or_default(),
            parameters: top
                .table("parameters")?
                .map(|fields| Parameters::read(&fields))
                .transpose()?,
            http: top
                .table("http")?
                .map(|fields| read_http(&fields))
                .transpose()?,
            dependencies: top
                .table("dependencies")?
                .map(|fields| read_dependencies(&fields))
                .transpose()?
                .unwrap_or_default(),
        })
    }

    /// The text of a manifest that has a table `[http]`: added where there is none.
    ///
    /// # Errors
    /// `invalid-manifest`, and `invalid-argument` where the table that is there says otherwise.
    pub fn with_http(text: &str, asked: HttpService) -> Result<String, Error> {
        if let Some(stated) = Self::parse(text, "Pie.toml")?.http {
            if stated.instance != asked.instance || (asked.public && !stated.public) {
                let message = "the manifest of the program has a table [http] already; say there who may ask and what answers, and nowhere else";
                return Err(Error::new(ErrorCode::InvalidArgument, message));
            }
            return Ok(text.to_owned());
        }
        let instance = match asked.instance {
            HttpInstance::Request => "request",
            HttpInstance::Shared => "shared",
        };
        let text = format!(
            "{}\n\n[http]\ninstance = \"{instance}\"\npublic = {}\n",
            text.trim_end_matches('\n'),
            asked.public
        );
        Self::parse(&text, "Pie.toml")?;
        Ok(text)
    }

    /// True for a parameter whose values are strings: an argument for it is no number, whatever it looks like.
    pub(crate) fn takes_text(&self, name: &str) -> bool {
        let parameters = self.parameters.iter().flat_map(|parameters| &parameters.0);
        let mut of_name = parameters.filter(|parameter| parameter.name == name);
        of_name.any(|parameter| parameter.kind == Kind::String)
    }

    /// The input as the program gets it: checked against `[parameters]`, with the defaults filled in.
    ///
    /// # Errors
    /// `invalid-input`, naming the parameter, its value and what is expected.
    pub(crate) fn checked_input(&self, input: String) -> Result<String, Error> {
        match &self.parameters {
            Some(parameters) => parameters.checked(input),
            None => Ok(input),
        }
    }
}

/// Whether `name` is one that a program can be installed by: lower-case letters, digits, `.`, `_` and `-`, at most 64,
/// beginning with a letter or digit.
pub fn is_program_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= MAX_NAME_BYTES
        && name.bytes().next().is_some_and(is_plain)
        && name
            .bytes()
            .all(|byte| is_plain(byte) || b"._-".contains(&byte))
}

/// Whether `version` is one that a program can be installed by: letters, digits, `.`, `+` and `-`, at most 32,
/// beginning with a letter or digit.
pub fn is_program_version(version: &str) -> bool {
    version.len() <= MAX_VERSION_BYTES
        && version
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
        && version
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".+-".contains(&byte))
}

fn read_package(fields: &Fields<'_>) -> Result<Package, Error> {
    fields.only(&["name", "version", "description", "authors"])?;
    let name = fields.required_text("name", "my-program")?;
    if !is_program_name(name) {
        return Err(fields.wrong_field(
            "name",
            "at most 64 lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit",
        ));
    }
    let version = fields.required_text("version", "0.1.0")?;
    if !is_program_version(version) {
        return Err(fields.wrong_field(
            "version",
            "at most 32 letters, digits, '.', '+' and '-', beginning with a letter or digit",
        ));
    }
    Ok(Package {
        name: name.to_owned(),
        version: version.to_owned(),
        description: fields.text("description")?.map(str::to_owned),
        authors: fields.texts("authors")?,
    })
}

fn read_entry(fields: &Fields<'_>) -> Result<Entry, Error> {
    fields.only(&["language", "entry"])?;
    let language = fields.text("language")?;
    if let Some(unknown) = language.filter(|language| !LANGUAGES.contains(language)) {
        let hint = did_you_mean(unknown, LANGUAGES);
        let expected = format!("one of {}{hint}", LANGUAGES.join(", "));
        return Err(fields.wrong_field("language", &expected));
    }
    let entry = fields.text("entry")?;
    if entry.is_some_and(|entry| !is_relative(entry)) {
        return Err(fields.wrong_field(
            "entry",
            "the path of a file below the project, with names separated by single slashes, without . and ..",
        ));
    }
    Ok(Entry {
        language: language.map(str::to_owned),
        entry: entry.map(str::to_owned),
    })
}

fn read_http(fields: &Fields<'_>) -> Result<HttpService, Error> {
    fields.only(&["instance", "public"])?;
    let instance = match fields.text("instance")? {
        None | Some("request") => HttpInstance::Request,
        Some("shared") => HttpInstance::Shared,
        Some(unknown) => {
            let hint = did_you_mean(unknown, INSTANCES);
            let expected = format!("one of {}{hint}", INSTANCES.join(", "));
            return Err(fields.wrong_field("instance", &expected));
        }
    };
    Ok(HttpService {
        instance,
        public: fields.flag("public")?,
    })
}

fn read_dependencies(fields: &Fields<'_>) -> Result<Dependencies, Error> {
    fields.only(&["python"])?;
    let python = fields.texts("python")?;
    if let Some(option) = python.iter().find(|text| text.trim().starts_with('-')) {
        // It would reach the installer as an option of the command line.
        let expected = format!(
            "requirements such as \"attrs>=24\"; {:?} is an option",
            shown(option)
        );
        return Err(fields.wrong_field("python", &expected));
    }
    Ok(Dependencies { python })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        let error = Manifest::parse(text, "Pie.toml").unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidManifest);
        error.message
    }

    const PACKAGE: &str = "[package]\nname = \"a\"\nversion = \"1\"\n";

    #[test]
    fn all_of_it_is_read() {
        let text = r#"
            [package]
            name = "hello-world"
            version = "0.1.0"
            description = "Greets."
            authors = ["Ada"]
            [program]
            language = "python"
            entry = "src/main.py"
            [parameters]
            name = "string"
            n = { type = "int", default = 3, min = 1, max = 9 }
            [http]
            instance = "shared"
            public = true
            [dependencies]
            python = ["attrs>=24"]
        "#;
        let manifest = serde_json::to_value(Manifest::parse(text, "Pie.toml").unwrap()).unwrap();
        let expected = serde_json::json!({
            "package": {"name": "hello-world", "version": "0.1.0", "description": "Greets.", "authors": ["Ada"]},
            "program": {"language": "python", "entry": "src/main.py"},
            "parameters": [
                {"name": "name", "type": "string", "optional": false, "default": null, "description": null, "choices": [],
                 "min": null, "max": null},
                {"name": "n", "type": "int", "optional": true, "default": 3, "description": null, "choices": [], "min": 1, "max": 9},
            ],
            "http": {"instance": "shared", "public": true},
            "dependencies": {"python": ["attrs>=24"]},
        });
        assert_eq!(manifest, expected);
        let short = Manifest::parse(&format!("{PACKAGE}[http]\n"), "Pie.toml").unwrap();
        assert_eq!(short.http, Some(HttpService::default()));
        assert_eq!(Manifest::parse(PACKAGE, "Pie.toml").unwrap().http, None);
    }

    #[test]
    fn a_table_for_http_is_added_where_there_is_none() {
        let shared = |public| HttpService {
            instance: HttpInstance::Shared,
            public,
        };
        let added = Manifest::with_http(PACKAGE, shared(true)).unwrap();
        assert_eq!(
            Manifest::parse(&added, "Pie.toml").unwrap().http,
            Some(shared(true))
        );
        // What it says is kept where that is what is asked for.
        assert_eq!(Manifest::with_http(&added, shared(true)).unwrap(), added);
        assert_eq!(Manifest::with_http(&added, shared(false)).unwrap(), added);
        let private = Manifest::with_http(PACKAGE, shared(false)).unwrap();
        for (text, asked) in [(&added, HttpService::default()), (&private, shared(true))] {
            let error = Manifest::with_http(text, asked).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{error}");
        }
        let error = Manifest::with_http("[", shared(true)).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidManifest);
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_line() {
        for (text, expected) in [
            ("a = ", "Pie.toml:1: this is not TOML: "),
            (
                "",
                "Pie.toml: the table [package] is missing; add it with name",
            ),
            (
                "[package]\nname = \"a\"\n",
                "Pie.toml: package.version is missing; add it, as in version = \"0.1.0\" under [package]",
            ),
            (
                "[package]\nname = 7\n",
                "Pie.toml:2: package.name = 7; expected a string",
            ),
            (
                "[package]\nversion = \"1\"\nname = \"A/b\"\n",
                "Pie.toml:3: package.name = \"A/b\"; expected at most 64 lower-case letters",
            ),
            (
                "[package]\nname = \"a\"\nversion = \"..\"\n",
                "Pie.toml:3: package.version = \"..\"; expected at most 32",
            ),
            (
                "[package]\nname = \"a\"\nverison = \"1\"\n",
                "Pie.toml:3: there is no field package.verison; did you mean \"version\"? Expected name, version",
            ),
            (
                "[pakcage]\n",
                "Pie.toml:1: there is no field pakcage; did you mean \"package\"?",
            ),
            ("package = 1\n", "Pie.toml:1: package = 1; expected a table"),
        ] {
            let message = fault(text);
            assert!(message.starts_with(expected), "{text:?}: {message}");
        }
        for (rest, expected) in [
            (
                "[program]\nlanguage = \"pyhton\"",
                "Pie.toml:5: program.language = \"pyhton\"; expected one of rust, python, javascript, typescript; did you mean \"python\"?",
            ),
            (
                "[program]\nentry = \"../x.py\"",
                "Pie.toml:5: program.entry = \"../x.py\"; expected the path of a file below",
            ),
            (
                "[http]\ninstance = \"shard\"",
                "Pie.toml:5: http.instance = \"shard\"; expected one of request, shared; did you mean \"shared\"?",
            ),
            (
                "[http]\npublic = 1",
                "Pie.toml:5: http.public = 1; expected true or false",
            ),
            (
                "[dependencies]\npython = \"attrs\"",
                "Pie.toml:5: dependencies.python = \"attrs\"; expected an array of strings",
            ),
            (
                "[dependencies]\npython = [\"--index-url=x\"]",
                "Pie.toml:5: dependencies.python = [\"--index-url=x\"]; expected requirements",
            ),
            (
                "[dependencies]\nnpm = []",
                "Pie.toml:5: there is no field dependencies.npm",
            ),
        ] {
            let message = fault(&format!("{PACKAGE}{rest}\n"));
            assert!(message.starts_with(expected), "{rest:?}: {message}");
        }
    }

    #[test]
    fn a_hostile_manifest_is_refused() {
        let deep = format!(
            "{PACKAGE}[parameters]\na = {}{}",
            "[".repeat(30_000),
            "]".repeat(30_000)
        );
        assert!(fault(&deep).contains("not TOML"));
        assert!(fault(&" ".repeat(MAX_MANIFEST_BYTES + 1)).contains("more than the 65536"));
        let long = format!("[package]\nname = \"{}\"", "x".repeat(50_000));
        assert!(fault(&long).len() < 300);
    }
}
