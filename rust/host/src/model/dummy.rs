//! The dummy driver as a thread: it answers a model's batches until the model is stopped.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use pie_core::{CommandFailure, DriverAnswer, dummy};

use super::Model;
use super::driver::Work;
use crate::Error;
use crate::errors::text_error;

/// How long the thread waits for a batch before it looks whether the model was stopped.
const SLICE: Duration = Duration::from_millis(500);

/// Starts a thread that drives `model` with the dummy driver; it ends when the model is stopped. `script` holds pairs
/// of a pattern on the visible text and a reply.
///
/// # Errors
/// `invalid-argument` for a reply that cannot be encoded, `internal` when there is no thread to be had.
pub(crate) fn drive(
    model: Arc<Model>,
    script: Vec<(String, String)>,
) -> Result<JoinHandle<()>, Error> {
    let mut driver = driver(&model, script)?;
    let work = move || {
        while !model.is_stopped() {
            // What this model hands out and nobody else holds is answered here for the first time, so that no call is
            // refused.
            drop(match model.next_work(SLICE) {
                None => continue,
                Some(Work::Batch(batch)) => match driver.run(batch.arena()) {
                    Ok(computed) => {
                        let answer = DriverAnswer::Logits(&computed.logits);
                        model.complete(&batch, answer, &computed.failures)
                    }
                    Err(failure) => model.fail(&batch, &failure.message),
                },
                Some(Work::Command(command)) => {
                    let outcome = driver.command(command.command());
                    let outcome = outcome.and_then(|()| write_files(command.command()));
                    let outcome = outcome.and_then(|()| move_pages(&mut driver, command.command()));
                    model.complete_command(&command, outcome)
                }
            });
        }
    };
    let thread = std::thread::Builder::new()
        .name("pie-dummy".to_owned())
        .spawn(work);
    thread.map_err(|error| {
        Error::internal(format!(
            "the thread of the dummy driver cannot be started: {error}"
        ))
    })
}

/// Writes the files of an adapter that is made. They hold nothing but its name, which is all that the driver knows.
fn write_files(command: &pie_core::Command) -> Result<(), CommandFailure> {
    let (adapter, path) = match command {
        pie_core::Command::CreateAdapter { adapter, path, .. } => (adapter, path),
        pie_core::Command::ChangeAdapter { to, path, .. } => (to, path),
        _ => return Ok(()),
    };
    let folder = Path::new(path);
    let config = format!(
        "{{\"peft_type\":\"LORA\",\"dummy\":\"{:016x}-{:08x}\"}}",
        adapter.id, adapter.version
    );
    let weights = [&2u64.to_le_bytes()[..], b"{}"].concat();
    let written = std::fs::create_dir(folder)
        .and_then(|()| std::fs::write(folder.join("adapter_config.json"), config))
        .and_then(|()| std::fs::write(folder.join("adapter_model.safetensors"), weights));
    written
        .map_err(|error| CommandFailure::Failed(format!("its files cannot be written ({error})")))
}

/// Moves pages between the driver and a file.
fn move_pages(
    driver: &mut dummy::Driver,
    command: &pie_core::Command,
) -> Result<(), CommandFailure> {
    let failed =
        |error: io::Error| CommandFailure::Failed(format!("pages cannot be moved ({error})"));
    let n_bytes = driver.capabilities().page_bytes;
    match command {
        pie_core::Command::ExportPages { pages, path } => {
            let file = File::options().write(true).open(path).map_err(failed)?;
            for &(place, page) in pages.iter() {
                let bytes = driver.export_page(page)?;
                file.write_all_at(&bytes, u64::from(place) * n_bytes)
                    .map_err(failed)?;
            }
        }
        pie_core::Command::ImportPages { pages, path } => {
            let file = File::open(path).map_err(failed)?;
            let mut bytes = vec![0; usize::try_from(n_bytes).unwrap_or(0)];
            for &(place, page) in pages.iter() {
                file.read_exact_at(&mut bytes, u64::from(place) * n_bytes)
                    .map_err(failed)?;
                driver.import_page(page, &bytes)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The dummy driver of a model, with a script as [`drive`] takes it.
///
/// # Errors
/// `invalid-argument` for a reply that cannot be encoded.
pub(super) fn driver(model: &Model, script: Vec<(String, String)>) -> Result<dummy::Driver, Error> {
    let driver = dummy::Driver::new(
        model.name(),
        model.vocab_size(),
        model.driver.n_pages,
        model.page_size(),
    )
    .with_host_pages(model.driver.host_pages);
    if script.is_empty() {
        return Ok(driver);
    }
    let tokenizer = model.chat.tokenizer().clone();
    let rule = |(pattern, reply): (String, String)| {
        let reply = tokenizer.encode_content(&reply).map_err(text_error)?;
        Ok(dummy::Rule { pattern, reply })
    };
    let rules = script
        .into_iter()
        .map(rule)
        .collect::<Result<Vec<_>, Error>>()?;
    let stop_tokens = model.chat.stop_tokens().unwrap_or_default();
    let end_token = stop_tokens
        .first()
        .or(model.chat.end_tokens().first())
        .copied()
        .unwrap_or(0);
    // Tokens of the vocabulary can always be decoded.
    let decode = Box::new(move |tokens: &[u32]| tokenizer.decode(tokens).unwrap_or_default());
    Ok(driver.with_script(dummy::Script::new(rules, end_token, decode)))
}
