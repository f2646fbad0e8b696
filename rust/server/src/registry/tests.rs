//! Installed programs over restarts and interruptions.

use std::fs;
use std::path::Path;

use super::*;

const MANIFEST: &str = "[package]\nname = \"p\"\nversion = \"1.0.0\"\n";

fn open(folder: &Path) -> Registry {
    let budget = Budget::new(1 << 20, None);
    let all = 1000 + MANIFEST.len() as u64;
    let shares = DiskShares { all, of_user: all };
    Registry::open(folder.to_owned(), shares, budget).unwrap()
}

fn install(
    registry: &Registry,
    user: &str,
    program: &str,
    content: &[u8],
) -> Result<bool, ErrorCode> {
    let (name, version) = program.split_once('@').unwrap();
    let component = Component::new(content);
    let install = Install {
        user: user.to_owned(),
        name: name.to_owned(),
        version: version.to_owned(),
        digest: digest_of(&component),
        component,
        manifest: Some(MANIFEST.to_owned()),
        is_public: name == "open",
    };
    registry
        .install(turn(registry), install)
        .map_err(|error| error.code)
}

fn turn(registry: &Registry) -> ChangeTurn {
    ChangeTurn(registry.changing.clone().try_lock_owned().unwrap())
}

/// The content that a user gets under a name, read from the disk.
fn content(registry: &Registry, user: &str, program: &str) -> Result<Vec<u8>, ErrorCode> {
    let found = registry.find(user, program).map_err(|error| error.code)?;
    let component = disk::read(&found.folder, &found.digest, &found.label);
    component
        .map(|component| component.bytes().to_vec())
        .map_err(|error| error.code)
}

#[test]
fn programs_belong_to_their_users_and_survive() {
    let folder = tempfile::tempdir().unwrap();
    let registry = open(folder.path());
    assert_eq!(install(&registry, "alice", "p@1.0", b"one"), Ok(false));
    assert_eq!(install(&registry, "alice", "p@1.10", b"ten"), Ok(false));
    assert_eq!(install(&registry, "alice", "p@1.9", b"nine"), Ok(false));
    assert_eq!(install(&registry, "bob", "p@1.0", b"his"), Ok(false));
    assert_eq!(install(&registry, "alice", "p@1.0", b"one again"), Ok(true));
    registry.close();
    for registry in [registry, open(folder.path())] {
        assert_eq!(content(&registry, "alice", "p@1.0").unwrap(), b"one again");
        assert_eq!(content(&registry, "alice", "p").unwrap(), b"ten");
        assert_eq!(content(&registry, "bob", "p").unwrap(), b"his");
        let digest = digest_of(&Component::new(*b"nine"));
        assert_eq!(content(&registry, "alice", &digest).unwrap(), b"nine");
        assert_eq!(
            content(&registry, "bob", &digest),
            Err(ErrorCode::UnknownProgram)
        );
        assert_eq!(
            content(&registry, "al", "p"),
            Err(ErrorCode::UnknownProgram)
        );
        let found = registry.find("bob", "p").unwrap();
        assert_eq!(
            (found.label.as_str(), found.manifest.as_deref()),
            ("p@1.0", Some(MANIFEST))
        );
        let listed = registry.list(Some("alice"));
        let versions: Vec<_> = listed.map(|row| row["version"].clone()).collect();
        assert_eq!(versions, ["1.0", "1.9", "1.10"]);
    }
}

#[test]
fn what_is_public_is_known_without_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let registry = open(folder.path());
    for program in ["open@1", "closed@1"] {
        install(&registry, "alice", program, program.as_bytes()).unwrap();
    }
    registry.close();
    for registry in [registry, open(folder.path())] {
        for (user, program, expected) in [
            ("alice", "open", true),
            ("alice", "open@1", true),
            ("alice", "open@2", false),
            ("alice", "closed", false),
            ("alice", "absent", false),
            ("bob", "open", false),
        ] {
            assert_eq!(
                registry.is_public(user, program),
                expected,
                "{user}: {program}"
            );
        }
        let digest = digest_of(&Component::new(*b"open@1"));
        assert!(!registry.is_public("alice", &digest));
    }
    // Nothing is left of the contents, and it is known all the same; a restart would leave the programs out.
    let registry = open(folder.path());
    for program in ["open@1", "closed@1"] {
        let found = registry.find("alice", program).unwrap();
        let name = format!("{}.wasm", found.digest.trim_start_matches("sha256:"));
        fs::remove_file(folder.path().join("alice").join(program).join(name)).unwrap();
    }
    assert!(registry.is_public("alice", "open") && !registry.is_public("alice", "closed"));
}

#[test]
fn what_was_uninstalled_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let registry = open(folder.path());
    install(&registry, "alice", "p@1", b"one").unwrap();
    registry
        .uninstall(turn(&registry), "alice", "p", "1")
        .unwrap();
    let again = registry
        .uninstall(turn(&registry), "alice", "p", "1")
        .unwrap_err();
    assert_eq!(again.code, ErrorCode::UnknownProgram);
    registry.close();
    for registry in [registry, open(folder.path())] {
        assert_eq!(
            content(&registry, "alice", "p@1"),
            Err(ErrorCode::UnknownProgram)
        );
    }
    assert!(!folder.path().join("alice/p@1").exists());
}

#[test]
fn an_interrupted_install_leaves_the_old_program() {
    let folder = tempfile::tempdir().unwrap();
    install(&open(folder.path()), "alice", "p@1", b"old").unwrap();
    let place = folder.path().join("alice/p@1");
    // As far as an install gets before its record is renamed.
    fs::write(place.join(format!("{}.wasm", "a".repeat(64))), b"new").unwrap();
    fs::write(place.join(".tmpXYZ"), b"half").unwrap();
    let first = folder.path().join("alice/q@1");
    fs::create_dir(&first).unwrap();
    fs::write(first.join(format!("{}.wasm", "b".repeat(64))), b"new").unwrap();
    let registry = open(folder.path());
    assert_eq!(content(&registry, "alice", "p@1").unwrap(), b"old");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 2);
    assert_eq!(
        content(&registry, "alice", "q@1"),
        Err(ErrorCode::UnknownProgram)
    );
    assert!(!first.exists());
}

#[test]
fn damage_is_told_and_harms_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let registry = open(folder.path());
    install(&registry, "alice", "p@1", b"whole").unwrap();
    install(&registry, "alice", "q@1", b"other").unwrap();
    let content_file = |program: &str| {
        let entries = fs::read_dir(folder.path().join("alice").join(program)).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        paths
            .find(|path| path.extension().is_some_and(|end| end == "wasm"))
            .unwrap()
    };
    fs::write(content_file("p@1"), b"WHOLE").unwrap();
    assert_eq!(
        content(&registry, "alice", "p"),
        Err(ErrorCode::InvalidProgram)
    );
    fs::write(content_file("p@1"), b"short").unwrap();
    fs::write(folder.path().join("alice/p@1/program.json"), b"{").unwrap();
    fs::create_dir(folder.path().join("not a user")).unwrap();
    registry.close();
    let registry = open(folder.path());
    assert_eq!(
        content(&registry, "alice", "p"),
        Err(ErrorCode::UnknownProgram)
    );
    assert_eq!(content(&registry, "alice", "q").unwrap(), b"other");
}

#[test]
fn what_is_installed_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let registry = open(folder.path());
    install(&registry, "alice", "p@1", &[0; 900]).unwrap();
    assert_eq!(
        install(&registry, "bob", "p@1", &[0; 101]),
        Err(ErrorCode::LimitProgram)
    );
    assert_eq!(install(&registry, "alice", "p@1", &[1; 1000]), Ok(true));
    registry
        .uninstall(turn(&registry), "alice", "p", "1")
        .unwrap();
    assert_eq!(install(&registry, "bob", "p@1", &[0; 101]), Ok(false));
}

#[test]
fn a_folder_belongs_to_one_registry() {
    let folder = tempfile::tempdir().unwrap();
    let registry = open(folder.path());
    install(&registry, "alice", "p@1", b"one").unwrap();
    // What a scan would take for the rest of an interrupted install.
    let under_way = folder.path().join("alice/q@1");
    fs::create_dir(&under_way).unwrap();
    let budget = Budget::new(1 << 20, None);
    let (all, of_user) = (1000, 1000);
    let shares = DiskShares { all, of_user };
    let second = Registry::open(folder.path().to_owned(), shares, budget);
    let error = second.err().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidConfig);
    let shown = folder.path().display().to_string();
    assert!(
        error.message.contains(&shown) && error.message.contains("engine.data_dir"),
        "{error}"
    );
    assert!(under_way.exists());
    registry.close();
    assert_eq!(content(&open(folder.path()), "alice", "p").unwrap(), b"one");
}

#[test]
fn a_program_that_is_replaced_while_it_is_read_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let registry = open(folder.path());
    install(&registry, "alice", "p@1", b"old").unwrap();
    let by_name = registry.find("alice", "p").unwrap();
    let by_digest = registry
        .find("alice", &digest_of(&Component::new(*b"old")))
        .unwrap();
    install(&registry, "alice", "p@1", b"new").unwrap();
    let (label, program) = registry.load(by_name.clone()).unwrap();
    assert_eq!(label, "p@1");
    let new = registry.find("alice", "p").unwrap();
    assert_eq!(new.digest, digest_of(&Component::new(*b"new")));
    drop(program);
    // Another content is not what was asked for by its digest.
    assert_eq!(
        registry.load(by_digest).unwrap_err().code,
        ErrorCode::UnknownProgram
    );
    registry
        .uninstall(turn(&registry), "alice", "p", "1")
        .unwrap();
    assert_eq!(
        registry.load(by_name).unwrap_err().code,
        ErrorCode::UnknownProgram
    );
}

#[test]
fn what_is_loaded_late_does_not_put_an_old_manifest_back() {
    let folder = tempfile::tempdir().unwrap();
    let registry = open(folder.path());
    install(&registry, "alice", "p@1", b"same").unwrap();
    let old = registry.find("alice", "p").unwrap();
    install(&registry, "alice", "p@1", b"same").unwrap();
    // The content is the same, so that the late reading succeeds.
    registry.load(old.clone()).unwrap();
    assert!(registry.held(&old).is_none());
    assert!(
        registry
            .held(&registry.find("alice", "p").unwrap())
            .is_some()
    );
}

#[test]
fn the_programs_of_a_user_are_bounded_and_manifests_count() {
    let installed = |version: usize| Installed {
        version: version.to_string(),
        digest: String::new(),
        n_bytes: 1,
        at_s: 0.0,
        manifest: Some(MANIFEST.to_owned()),
        is_public: false,
        folder: ProgramFolder::of(Path::new(""), "alice", "p", "1"),
        serial: 0,
    };
    let mut index = Index::default();
    for n in 0..MAX_PROGRAMS_OF_USER {
        index.add("alice".to_owned(), format!("p{n}"), installed(n));
    }
    let bytes = (MAX_PROGRAMS_OF_USER * (1 + MANIFEST.len())) as u64;
    assert_eq!(index.n_bytes, bytes);
    let room = |index: &Index, user: &str, name: &str, all: u64| {
        let shares = DiskShares { all, of_user: all };
        let checked = index.check_room(user, name, "0", 10, shares);
        checked.map_err(|error| error.message)
    };
    let fault = room(&index, "alice", "q", u64::MAX).unwrap_err();
    assert!(fault.contains("has 10000 programs"), "{fault}");
    room(&index, "alice", "p0", u64::MAX).unwrap();
    room(&index, "bob", "q", bytes + 10).unwrap();
    let fault = room(&index, "bob", "q", bytes + 9).unwrap_err();
    assert!(fault.contains("server.max_installed_bytes"), "{fault}");
    assert!(index.remove("alice", "p0", "0"));
    room(&index, "alice", "q", u64::MAX).unwrap();
}

#[test]
fn the_bytes_of_a_user_are_bounded_so_that_others_have_room() {
    let installed = |n_bytes: u64| Installed {
        version: "1".to_owned(),
        digest: String::new(),
        n_bytes,
        at_s: 0.0,
        manifest: None,
        is_public: false,
        folder: ProgramFolder::of(Path::new(""), "alice", "p", "1"),
        serial: 0,
    };
    let config = crate::ServerConfig {
        max_installed_bytes: 8000,
        ..crate::ServerConfig::default()
    };
    let shares = config.disk_shares();
    assert_eq!((shares.all, shares.of_user), (8000, 1000));
    let mut index = Index::default();
    index.add("alice".to_owned(), "p".to_owned(), installed(400));
    index.add("alice".to_owned(), "q".to_owned(), installed(500));
    let room = |index: &Index, user: &str, name: &str, n_bytes: u64| {
        let checked = index.check_room(user, name, "1", n_bytes, shares);
        checked.map_err(|error| (error.code, error.message))
    };
    room(&index, "alice", "r", 100).unwrap();
    let (code, fault) = room(&index, "alice", "r", 101).unwrap_err();
    assert_eq!(code, ErrorCode::LimitProgram);
    assert!(
        fault.contains("server.max_user_installed_bytes = 1000"),
        "{fault}"
    );
    // What is replaced makes room, and others have theirs.
    room(&index, "alice", "p", 500).unwrap();
    room(&index, "bob", "p", 1000).unwrap();
    assert!(index.remove("alice", "q", "1"));
    room(&index, "alice", "r", 600).unwrap();
    assert!(index.remove("alice", "p", "1"));
    assert!(index.of_users.is_empty());
    // A share of one's own, as it is set.
    let set = crate::ServerConfig {
        max_user_installed_bytes: 7,
        ..config
    };
    assert_eq!(set.disk_shares().of_user, 7);
}

#[test]
fn what_strangers_put_beside_a_program_harms_it_not_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    install(&open(folder.path()), "alice", "p@1", b"one").unwrap();
    let place = folder.path().join("alice/p@1");
    fs::create_dir(place.join("stray")).unwrap();
    fs::write(place.join("stray/notes"), b"mine").unwrap();
    fs::create_dir(place.join(".tmpfolder")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", place.join("link")).unwrap();
    let registry = open(folder.path());
    assert_eq!(content(&registry, "alice", "p@1").unwrap(), b"one");
    assert_eq!(install(&registry, "alice", "p@1", b"two"), Ok(true));
    registry
        .uninstall(turn(&registry), "alice", "p", "1")
        .unwrap();
    registry.close();
    let registry = open(folder.path());
    assert_eq!(
        content(&registry, "alice", "p@1"),
        Err(ErrorCode::UnknownProgram)
    );
    assert_eq!(fs::read(place.join("stray/notes")).unwrap(), b"mine");
    // The place is free all the same.
    assert_eq!(install(&registry, "alice", "p@1", b"three"), Ok(false));
    assert_eq!(content(&registry, "alice", "p@1").unwrap(), b"three");
}

#[test]
fn a_disk_that_fails_is_no_fault_of_the_engine_and_names_no_path() {
    let folder = tempfile::tempdir().unwrap();
    let registry = open(folder.path());
    install(&registry, "alice", "p@1", b"one").unwrap();
    // A file in the place of the folder of a user, and a folder in the place of a record and of a content.
    fs::write(folder.path().join("bob"), b"").unwrap();
    assert_eq!(
        install(&registry, "bob", "p@1", b"his"),
        Err(ErrorCode::DiskError)
    );
    let place = folder.path().join("alice/p@1");
    let found = registry.find("alice", "p").unwrap();
    fs::remove_file(place.join("program.json")).unwrap();
    fs::create_dir(place.join("program.json")).unwrap();
    let error = registry
        .uninstall(turn(&registry), "alice", "p", "1")
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::DiskError);
    let shown = folder.path().display().to_string();
    assert!(!error.message.contains(&shown), "{error}");
    assert!(error.message.contains("the program p@1 cannot be removed"));
    let file = place.join(format!(
        "{}.wasm",
        found.digest.trim_start_matches("sha256:")
    ));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let error = disk::read(&found.folder, &found.digest, &found.label).unwrap_err();
    assert_eq!(error.code, ErrorCode::DiskError);
    assert!(!error.message.contains(&shown), "{error}");
    // What stood in memory before is not touched by it.
    assert!(registry.held(&found).is_some());
}

#[test]
fn a_program_that_is_not_there_is_told_what_its_user_has_and_nothing_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let registry = open(folder.path());
    for (user, program) in [
        ("ada", "shout@1.0"),
        ("ada", "shout@1.10"),
        ("bob", "whisper@1"),
    ] {
        install(&registry, user, program, program.as_bytes()).unwrap();
    }
    let told = |user: &str, program: &str| match registry.find(user, program) {
        Ok(found) => found.label,
        Err(error) => error.message,
    };
    let listed = |user: &str| {
        format!("install it first, or choose one that `pie programs --user {user}` lists")
    };
    let digest = digest_of(&Component::new(*b"whisper@1"));
    for (program, remedy) in [
        (
            "shout@2",
            "of \"shout\" there are the versions 1.10, 1.0; launch one of them, or install it first"
                .to_owned(),
        ),
        (
            "shuot@1.0",
            format!("{}; did you mean \"shout@1.10\"?", listed("ada")),
        ),
        (
            "shuot",
            format!("{}; did you mean \"shout\"?", listed("ada")),
        ),
        ("whisper@1", listed("ada")),
        ("whisper", listed("ada")),
        (
            "shout.py",
            "upload the file and launch the digest that the upload returns, or install it; did you mean \"shout\"?"
                .to_owned(),
        ),
        (
            digest.as_str(),
            "an upload lasts as long as the connection that sent it: upload the file over this one, or install it"
                .to_owned(),
        ),
    ] {
        assert_eq!(
            told("ada", program),
            format!("\"ada\" has no program {program:?}; {remedy}")
        );
    }
    // Of those of somebody else there is no trace: the words stay the same when they are gone.
    let before = [
        told("ada", "whisper@1"),
        told("ada", "whisper@2"),
        told("ada", &digest),
    ];
    assert_eq!(
        told("carl", "shout@1.0"),
        format!("\"carl\" has no program \"shout@1.0\"; {}", listed("carl"))
    );
    registry
        .uninstall(turn(&registry), "bob", "whisper", "1")
        .unwrap();
    let after = [
        told("ada", "whisper@1"),
        told("ada", "whisper@2"),
        told("ada", &digest),
    ];
    assert_eq!(before, after);
}

#[test]
fn a_name_of_any_length_is_told_in_a_few_words() {
    let folder = tempfile::tempdir().unwrap();
    let registry = open(folder.path());
    install(&registry, "ada", "shout@1.0", b"one").unwrap();
    let error = registry
        .find("ada", &"shout".repeat(1 << 18))
        .err()
        .unwrap();
    assert!(error.message.len() < 400, "{}", error.message.len());
}
