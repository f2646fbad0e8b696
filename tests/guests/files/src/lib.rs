//! Programs that use files: one function a task, by the standard library alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use inferlet::{Result, files};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Input {
    Scenario { root: String },
    Write { path: String, text: String },
    Read { path: String },
    List { path: String },
    Make { path: String },
    Reach { paths: Vec<String> },
    Fill { path: String, size: usize },
    Many { path: String, n: usize },
    Uncaught { path: String, size: usize },
}

#[inferlet::main]
async fn main(input: Input) -> Result<Value> {
    done(input).map_err(|error| match files::refusal() {
        Some(refusal) => refusal,
        None => name(&error),
    })
}

fn done(input: Input) -> io::Result<Value> {
    Ok(match input {
        Input::Scenario { root } => scenario(&root)?,
        Input::Write { path, text } => json!(fs::write(path, text)?),
        Input::Read { path } => json!(fs::read_to_string(path)?),
        Input::List { path } => json!(names(&path)?),
        Input::Make { path } => json!(fs::create_dir_all(path)?),
        Input::Reach { paths } => paths.iter().map(|path| reach(path)).collect(),
        Input::Fill { path, size } => {
            let stopped = failure(fs::write(&path, vec![b'x'; size]));
            json!([stopped, refusal(), fs::metadata(path)?.len() <= size as u64])
        }
        Input::Many { path, n } => many(&path, n),
        Input::Uncaught { path, size } => json!(fs::write(path, vec![b'x'; size])?),
    })
}

fn scenario(root: &str) -> io::Result<Value> {
    let folder = Path::new(root).join("notes");
    let mut seen = Vec::new();
    fs::create_dir_all(folder.join("deep"))?;
    fs::write(folder.join("a.txt"), "one\n")?;
    let mut file = OpenOptions::new().append(true).open(folder.join("a.txt"))?;
    file.write_all("zwei ä\n".as_bytes())?;
    drop(file);
    seen.push(json!(fs::read_to_string(folder.join("a.txt"))?));
    seen.push(json!(fs::metadata(folder.join("a.txt"))?.len()));
    seen.push(json!(names(&folder)?));
    let renamed = folder.join("deep/b.txt");
    fs::rename(folder.join("a.txt"), &renamed)?;
    fs::write(&renamed, "x")?;
    seen.push(json!(fs::read_to_string(&renamed)?));
    let mut file = OpenOptions::new().read(true).write(true).open(&renamed)?;
    file.seek(SeekFrom::Start(3))?;
    file.write_all(b"y")?;
    file.set_len(6)?;
    drop(file);
    seen.push(json!(fs::read(&renamed)?));
    seen.push(json!(failure(fs::read(folder.join("missing")))));
    seen.push(json!(failure(fs::remove_dir(folder.join("deep")))));
    seen.push(json!(failure(fs::create_dir(folder.join("deep")))));
    seen.push(json!(failure(File::create(folder.join("deep")))));
    seen.push(json!(failure(File::create_new(&renamed))));
    fs::remove_file(&renamed)?;
    fs::remove_dir(folder.join("deep"))?;
    seen.push(json!(names(&folder)?));
    fs::remove_dir_all(&folder)?;
    seen.push(json!(folder.exists()));
    Ok(seen.into())
}

fn names(path: impl AsRef<Path>) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(path)?;
    let names: io::Result<Vec<String>> = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect();
    let mut names = names?;
    names.sort();
    Ok(names)
}

fn reach(path: &str) -> Value {
    json!([
        failure(fs::read(path)),
        failure(fs::write(path, "mine")),
        failure(fs::create_dir(path))
    ])
}

fn many(path: &str, n: usize) -> Value {
    let (mut made, mut stopped) = (0, None);
    while made < n && stopped.is_none() {
        stopped = failure(fs::write(format!("{path}/{made}"), ""));
        made += usize::from(stopped.is_none());
    }
    json!([made, stopped, refusal()])
}

/// The code of the engine's last refusal.
fn refusal() -> Option<String> {
    files::refusal()
        .and_then(|text| inferlet::error_code(&text))
        .map(|code| code.as_str().to_owned())
}

fn failure<T>(result: io::Result<T>) -> Option<String> {
    result.err().map(|error| name(&error))
}

/// The name of an error in C, by its number in WASI.
fn name(error: &io::Error) -> String {
    let name = match error.raw_os_error() {
        Some(2) => "EACCES",
        Some(19) => "EDQUOT",
        Some(20) => "EEXIST",
        Some(28) => "EINVAL",
        Some(29) => "EIO",
        Some(31) => "EISDIR",
        Some(32) => "ELOOP",
        Some(37) => "ENAMETOOLONG",
        Some(44) => "ENOENT",
        Some(48) => "ENOMEM",
        Some(54) => "ENOTDIR",
        Some(55) => "ENOTEMPTY",
        Some(58) => "ENOTSUP",
        Some(63) => "EPERM",
        Some(69) => "EROFS",
        _ => return error.to_string(),
    };
    name.to_owned()
}
