//! Programs: what is refused, what is cached, what may be returned.

use std::sync::Arc;
use std::time::Duration;

use pie_host::{
    Component, Error, Failure, Host, HostConfig, Language, Launch, Program, SourceBundle,
};

use crate::guest::{bytes, check, failed, host, host_with, launch, plain, returned};

fn refused(wasm: impl Into<Arc<[u8]>>) -> Failure {
    failed(&host(), &Component::new(wasm).into())
}

#[test]
fn a_program_gets_its_input_and_gives_its_answer() {
    let echo = plain(
        r#"(func (export "run") (param i32 i32) (result i32) (call $ok (local.get 0) (local.get 1)))"#,
    );
    let host = host();
    assert_eq!(
        returned(&host, &echo, "{\"a\":[1,\"ü\"]}"),
        "{\"a\":[1,\"ü\"]}"
    );
    assert_eq!(
        returned(&host, &echo, "not json"),
        "{\"input\":\"not json\"}"
    );
}

#[test]
fn what_is_no_program_is_refused_by_name() {
    check(&refused(*b"hello"), "invalid-program", &["not WebAssembly"]);
    check(
        &refused(bytes("(module)")),
        "invalid-program",
        &["core WebAssembly module", "wasm32-wasip2"],
    );
    check(
        &refused(bytes("(component)")),
        "invalid-program",
        &["pie:inferlet/run@0.1.0"],
    );
    let stranger =
        r#"(component (import "acme:bank/vault@1.0.0" (instance (export "open" (func)))))"#;
    check(
        &refused(bytes(stranger)),
        "invalid-program",
        &["acme:bank/vault@1.0.0"],
    );
    let runtime_only = r#"(component (import "pie:inferlet/source@0.1.0" (instance (export "entry" (func (result string))))))"#;
    check(
        &refused(bytes(runtime_only)),
        "invalid-program",
        &["pie:inferlet/source@0.1.0"],
    );
}

#[test]
fn a_program_is_looked_at_without_running() {
    let host = host();
    let spins = plain(
        r#"(func (export "run") (param i32 i32) (result i32) (loop $again (br $again)) (unreachable))"#,
    );
    let look = |program: Program| -> Result<(), Error> {
        let check = host.check(program, "ada")?;
        loop {
            if let Some(()) = check.wait_for(Duration::from_secs(60))? {
                return Ok(());
            }
        }
    };
    look(spins).unwrap();
    let error = look(Component::new(bytes("(component)")).into()).unwrap_err();
    assert_eq!(error.code.as_str(), "invalid-program");
    assert!(
        error.message.contains("pie:inferlet/run@0.1.0"),
        "{}",
        error.message
    );
}

#[test]
fn a_component_that_was_cut_is_refused() {
    let whole = bytes("(component (core module (func (export \"f\"))))");
    for n_bytes in [9, whole.len() / 2, whole.len() - 1] {
        check(
            &refused(&whole[..n_bytes]),
            "invalid-program",
            &["damaged or cut off"],
        );
    }
}

#[test]
fn machine_code_is_refused() {
    let code = wasmtime::Engine::default()
        .precompile_component(&bytes("(component)"))
        .unwrap();
    check(&refused(code), "invalid-program", &["machine code"]);
}

#[test]
fn an_answer_that_is_no_json_is_named() {
    let answers = plain(
        r#"(func (export "run") (param i32 i32) (result i32) (call $ok (i32.const 1028) (i32.const 8)))"#,
    );
    check(
        &failed(&host(), &answers),
        "invalid-output",
        &["not JSON", "\"not json\""],
    );
}

#[test]
fn an_answer_that_is_not_utf8_is_a_trap() {
    let answers = plain(
        r#"(func (export "run") (param i32 i32) (result i32) (call $ok (i32.const 1036) (i32.const 3)))"#,
    );
    check(&failed(&host(), &answers), "trap", &["utf-8"]);
}

#[test]
fn an_answer_outside_the_memory_is_a_trap() {
    let answers = plain(
        r#"(func (export "run") (param i32 i32) (result i32) (call $ok (i32.const 65000) (i32.const 1000000)))"#,
    );
    check(&failed(&host(), &answers), "trap", &[]);
}

#[test]
fn a_language_without_a_runtime_is_named() {
    let bundle = SourceBundle {
        language: Language::Python,
        files: Arc::new([("main.py".to_owned(), Vec::new())].into()),
        entry: "main.py".to_owned(),
    };
    check(
        &failed(&host(), &bundle.clone().into()),
        "invalid-config",
        &["python"],
    );
    let host = host_with(|config| config.python_runtime = Some("/nowhere/python.wasm".into()));
    check(
        &failed(&host, &bundle.into()),
        "invalid-config",
        &["python", "cannot be read"],
    );
    assert!(!host.is_prepared(Language::Python));
}

#[test]
fn a_compiled_program_is_found_on_disk_by_the_next_host() {
    let dir = tempfile::tempdir().unwrap();
    let cached = || {
        Host::new(HostConfig {
            cache_dir: Some(dir.path().join("cache")),
            ..HostConfig::default()
        })
        .unwrap()
    };
    let wasm = component_bytes();
    let component = Component::new(wasm);
    {
        let host = cached();
        assert!(!host.is_compiled(&component));
        host.compile(&component).unwrap().wait().unwrap();
    }
    let host = cached();
    assert!(host.is_compiled(&component));
    assert_eq!(returned(&host, &component.clone().into(), "1"), "true");
    // A file that was damaged is compiled again.
    let file = std::fs::read_dir(dir.path().join("cache"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut code = std::fs::read(&file).unwrap();
    let middle = code.len() / 2;
    code[middle] ^= 1;
    std::fs::write(&file, &code).unwrap();
    assert_eq!(returned(&cached(), &component.into(), "1"), "true");
    assert_ne!(std::fs::read(&file).unwrap(), code);
}

#[test]
fn a_host_without_settings_keeps_what_it_has_compiled() {
    let host = Host::new(HostConfig::default()).unwrap();
    let component = Component::new(component_bytes());
    host.compile(&component).unwrap().wait().unwrap();
    assert!(host.is_compiled(&component));
}

#[test]
fn programs_beyond_the_bound_are_compiled_again() {
    let host = host_with(|config| config.max_programs = 2);
    let programs: Vec<Program> = (0..4)
        .map(|number| plain(&format!(r#"(func (export "run") (param i32 i32) (result i32) (drop (i32.const {number})) (call $ok (i32.const 1024) (i32.const 4)))"#)))
        .collect();
    for _ in 0..2 {
        for program in &programs {
            assert_eq!(returned(&host, program, "null"), "true");
        }
    }
}

#[test]
fn a_launch_beyond_its_bounds_is_refused() {
    let host = host_with(|config| config.max_processes = 1);
    let program: Program = Component::new(component_bytes()).into();
    let spins = plain(
        r#"(func (export "run") (param i32 i32) (result i32) (loop $again (br $again)) (unreachable))"#,
    );
    let spinning = launch(&host, &spins, "null");
    let plain_launch = |input: String| Launch::new(program.clone(), input);
    let error = host.launch(plain_launch("null".to_owned())).unwrap_err();
    assert_eq!(error.code.as_str(), "limit-processes");
    let error = host.launch(plain_launch("1".repeat(9 << 20))).unwrap_err();
    assert_eq!(error.code.as_str(), "limit-message");
    drop(spinning);
}

fn component_bytes() -> Vec<u8> {
    crate::guest::plain_bytes(
        r#"(func (export "run") (param i32 i32) (result i32) (call $ok (i32.const 1024) (i32.const 4)))"#,
    )
}
