//! Uploads and installed programs.

use std::sync::Arc;

use futures_util::SinkExt;
use pie_host::{Host, HostConfig, Language, Packed};
use pie_server::{Server, ServerConfig};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::client::digest;
use crate::world::{World, chatty, quick, returning, spinning};

#[test]
fn installed_programs_survive_a_restart() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let world = World::over(folder.clone(), HostConfig::default(), |_| ());
    world.run(async {
        let mut client = world.client("alice").await;
        let installed = client.install("p", "1.9", &quick()).await;
        assert_eq!(installed["replaced"], false);
        assert_eq!(
            client.install("p", "1.10", &chatty(1)).await["replaced"],
            false
        );
    });
    drop(world);
    let world = World::over(folder, HostConfig::default(), |_| ());
    world.run(async {
        let mut client = world.client("alice").await;
        for (program, n_texts) in [("p", 1), ("p@1.9", 0), (digest(&quick()).as_str(), 0)] {
            let pid = client.launch(program).await;
            let (texts, last) = client.events(pid).await;
            assert_eq!(
                (texts.len(), &last["value"]),
                (n_texts, &json!("true")),
                "{program}"
            );
        }
        let listed = client.request(json!({"type": "programs"})).await.unwrap();
        let programs = listed["programs"].as_array().unwrap();
        let versions: Vec<_> = programs.iter().map(|program| &program["version"]).collect();
        assert_eq!(versions, ["1.9", "1.10"]);
        client
            .request(json!({"type": "uninstall", "name": "p", "version": "1.10"}))
            .await
            .unwrap();
        let gone = client
            .request(json!({"type": "launch", "program": "p@1.10"}))
            .await;
        assert_eq!(gone, Err("unknown-program".to_owned()));
    });
}

#[test]
fn the_host_finds_programs_and_processes_of_users_as_long_as_there_is_a_server() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        client.install("p", "1", &spinning()).await;
        let pid = client.launch("p").await;
        let host = &world.host;
        let found = host.find_program("alice", "p").await.unwrap();
        assert_eq!(found.label, "p@1");
        assert_eq!(host.find_process("alice", pid).unwrap().pid(), pid);
        let program = host.find_program("bob", "p").await.map(drop);
        assert_eq!(program.unwrap_err().code.as_str(), "unknown-program");
        let process = host.find_process("bob", pid).map(drop).unwrap_err();
        assert_eq!(process.code.as_str(), "unknown-process");
    });
    let World { server, host, .. } = world;
    drop(server);
    let program = futures_util::FutureExt::now_or_never(host.find_program("alice", "p"));
    let error = program.unwrap().map(drop).unwrap_err();
    assert_eq!(error.code.as_str(), "unknown-program");
}

#[test]
fn a_second_server_leaves_the_folder_of_the_first_alone() {
    let world = World::new();
    let start = || {
        let mut config = ServerConfig::new(world.folder.path().to_owned());
        config.port = 0;
        Server::start(Arc::new(Host::new(HostConfig::default()).unwrap()), config)
    };
    let error = start().err().unwrap();
    assert_eq!(error.code.as_str(), "invalid-config");
    assert!(error.message.contains("another server uses"), "{error}");
    world.server.stop();
    start().unwrap();
}

#[test]
fn a_second_server_leaves_the_files_of_programs_alone() {
    let (data, own) = (
        tempfile::tempdir().unwrap(),
        [(); 2].map(|()| tempfile::tempdir().unwrap()),
    );
    let start = |folder: &tempfile::TempDir| {
        let host = Host::new(HostConfig {
            data_dir: Some(data.path().to_owned()),
            ..HostConfig::default()
        });
        let mut config = ServerConfig::new(folder.path().to_owned());
        config.port = 0;
        let host = Arc::new(host.unwrap());
        (host.clone(), Server::start(host, config))
    };
    let (host, first) = start(&own[0]);
    let first = first.unwrap();
    let error = start(&own[1]).1.err().unwrap();
    assert_eq!(error.code.as_str(), "invalid-config");
    assert!(
        error.message.contains("is used by another engine"),
        "{error}"
    );
    let folder = data.path().to_str().unwrap();
    assert!(error.message.contains(folder), "{error}");
    first.stop();
    host.stop();
    start(&own[1]).1.unwrap();
}

#[test]
fn a_replaced_program_runs_on_where_it_runs() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        client.install("p", "1", &spinning()).await;
        let old = client.launch("p@1").await;
        assert_eq!(client.install("p", "1", &quick()).await["replaced"], true);
        let new = client.launch("p@1").await;
        assert_eq!(client.events(new).await.1["value"], "true");
        client
            .request(json!({"type": "terminate", "pid": old}))
            .await
            .unwrap();
        assert_eq!(client.events(old).await.1["code"], "cancelled");
    });
}

#[test]
fn what_cannot_run_is_not_installed() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let stranger = wat::parse_str(
            r#"(component (import "acme:bank/vault@1.0.0" (instance (export "open" (func)))))"#,
        );
        let python = Packed {
            language: Some(Language::Python),
            entry: "main.py".to_owned(),
            files: [("main.py".to_owned(), Vec::new())].into(),
            runtime: Some([7; 32]),
            manifest: None,
            component: None,
        };
        for (content, code) in [
            (b"random bytes".to_vec(), "invalid-program"),
            (wat::parse_str("(component)").unwrap(), "invalid-program"),
            (stranger.unwrap(), "invalid-program"),
            (quick()[..100].to_vec(), "invalid-program"),
            (python.to_bytes().unwrap(), "unknown-runtime"),
        ] {
            let digest = client.upload(&content).await;
            let install = json!({"type": "install", "name": "p", "version": "1", "digest": digest});
            assert_eq!(client.request(install).await, Err(code.to_owned()));
        }
        let listed = client.request(json!({"type": "programs"})).await.unwrap();
        assert_eq!(listed["programs"], json!([]));
        // Nothing was launched for it.
        let launched = json!({"type": "processes", "all": true});
        let launched = client.request(launched).await.unwrap();
        assert_eq!(launched["processes"], json!([]));
    });
}

#[test]
fn names_that_could_be_paths_are_refused() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&quick()).await;
        for (name, version) in [
            ("../p", "1"),
            ("p/q", "1"),
            ("..", "1"),
            (".p", "1"),
            ("p\0", "1"),
            ("P", "1"),
            ("", "1"),
            ("p", ""),
            ("p", "../1"),
            ("p", "1/2"),
            ("p", ".."),
            ("p", "1@2"),
        ] {
            let request =
                json!({"type": "install", "name": name, "version": version, "digest": digest});
            assert_eq!(
                client.request(request).await,
                Err("invalid-name".to_owned()),
                "{name:?} {version:?}"
            );
        }
    });
    let installed = std::fs::read_dir(world.folder.path().join("programs"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().is_dir())
        .count();
    assert_eq!(installed, 0);
}

#[test]
fn uploads_in_parts_are_put_together_and_damage_is_told() {
    let world = World::with(|config| config.max_upload_bytes = 3 << 20);
    world.run(async {
        let mut client = world.client("alice").await;
        let whole: Vec<u8> = (0..2_500_000_u32).map(|n| n as u8).collect();
        let digest = digest(&whole);
        let part = |id: u64, offset: usize, end: usize, last: bool| {
            (json!({"id": id, "type": "upload", "digest": digest, "bytes": whole.len(), "offset": offset, "last": last}), offset..end)
        };
        for (header, range) in [part(100, 0, 1 << 20, false), part(100, 1 << 20, 2 << 20, false), part(100, 2 << 20, whole.len(), true)] {
            client.say_binary(&header, &whole[range]).await;
        }
        assert_eq!(client.answer(100).await.unwrap()["bytes"], whole.len());
        // No room for it twice.
        let (header, range) = part(101, 0, 1 << 20, false);
        client.say_binary(&header, &whole[range]).await;
        assert_eq!(client.answer(101).await, Err("limit-upload".to_owned()));
        let (header, _) = part(101, 0, 0, true);
        client.say_binary(&header, &[]).await;
        let mut client = world.client("alice").await;
        let mut wrong = whole.clone();
        wrong[7] ^= 1;
        for (steps, content) in [
            (vec![part(102, 0, 1 << 20, false), part(102, 7, 9, false), part(102, 9, 9, true)], &whole),
            (vec![part(103, 0, 1 << 20, false), part(103, 1 << 20, 1 << 20, true)], &whole),
            (vec![part(104, 0, 1 << 20, false), part(104, 1 << 20, 2 << 20, false), part(104, 2 << 20, whole.len(), true)], &wrong),
        ] {
            let id = steps[0].0["id"].as_u64().unwrap();
            for (header, range) in steps {
                client.say_binary(&header, &content[range]).await;
            }
            assert_eq!(client.answer(id).await, Err("upload-damaged".to_owned()), "{id}");
        }
        let large = json!({"id": 105, "type": "upload", "digest": digest, "bytes": 100 << 20, "offset": 0, "last": true});
        client.say_binary(&large, &[]).await;
        assert_eq!(client.answer(105).await, Err("limit-upload".to_owned()));
        let odd = json!({"id": 106, "type": "upload", "digest": "md5:x", "bytes": 1, "offset": 0, "last": true});
        client.say_binary(&odd, &[0]).await;
        assert_eq!(client.answer(106).await, Err("invalid-argument".to_owned()));
        assert_eq!(client.upload(&quick()).await.len(), 71);
    });
}

#[test]
fn a_malformed_part_gives_the_upload_up_and_frees_what_it_held() {
    let world = World::with(|config| config.max_upload_bytes = 1 << 20);
    world.run(async {
        let mut client = world.client("alice").await;
        let whole = vec![7; 1 << 20];
        let digest = digest(&whole);
        let header = json!({"id": 100, "type": "upload", "digest": digest, "bytes": whole.len(), "offset": 0, "last": false});
        client.say_binary(&header, &whole[1..]).await;
        client.say_binary(&json!({"id": 100, "type": "upload", "colour": 1}), &whole[..1]).await;
        assert_eq!(client.answer(100).await, Err("protocol-error".to_owned()));
        // What follows of it is skipped, up to the last part.
        client.say_binary(&header, &whole[1..]).await;
        client.say_binary(&json!({"id": 100, "type": "upload", "last": true}), b"").await;
        assert_eq!(client.upload(&whole).await, digest);
    });
}

#[test]
fn an_input_reaches_the_program_as_it_was_written() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&returning()).await;
        for input in ["94.52706955539223", "123456789012345678901234567890", "{\"a\": [1.0, -0.0, 1e2]}", "null"] {
            let launch = format!(r#"{{"id":500,"type":"launch","program":"{digest}","attach":true,"limits":null,"input":{input}}}"#);
            client.socket.send(Message::text(launch)).await.unwrap();
            let pid = client.answer(500).await.unwrap()["pid"].as_u64().unwrap();
            assert_eq!(client.events(pid).await.1["value"], input);
        }
        let pid = client.launch(&digest).await;
        assert_eq!(client.events(pid).await.1["value"], "null");
    });
}

#[test]
fn what_is_no_program_says_so_as_its_last_event() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client
            .upload(b"\x7fELF, a precompiled artefact that poses as a program")
            .await;
        let pid = client.launch(&digest).await;
        assert_eq!(client.events(pid).await.1["code"], "invalid-program");
        let mut other = world.client("alice").await;
        let launched = other
            .request(json!({"type": "launch", "program": digest}))
            .await;
        assert_eq!(
            launched,
            Err("unknown-program".to_owned()),
            "an upload belongs to its connection"
        );
    });
}

#[test]
fn a_program_is_installed_to_serve_unless_its_manifest_says_otherwise() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let stated = "[package]\nname = \"p\"\nversion = \"1\"\n[http]\ninstance = \"request\"\n";
        let carrying = Packed {
            manifest: Some(stated.to_owned()),
            component: Some(quick()),
            ..Packed::default()
        };
        let shared = json!({"shared": true, "public": false});
        let alone = json!({"shared": false, "public": false});
        let refused = Err("invalid-argument".to_owned());
        // Without a manifest it gets one; the one that is given counts, and else the one that it carries.
        for (content, manifest, http, outcome) in [
            (quick(), None, &shared, Ok(())),
            (quick(), Some(stated), &alone, Ok(())),
            (quick(), Some(stated), &shared, refused.clone()),
            (carrying.to_bytes().unwrap(), None, &alone, Ok(())),
            (carrying.to_bytes().unwrap(), None, &shared, refused.clone()),
            (quick(), Some("["), &shared, Err("invalid-manifest".to_owned())),
        ] {
            let digest = client.upload(&content).await;
            let mut install = json!({"type": "install", "name": "p", "version": "1", "digest": digest, "http": http});
            if let Some(manifest) = manifest {
                install["manifest"] = json!(manifest);
            }
            assert_eq!(client.request(install).await.map(drop), outcome);
        }
    });
}
