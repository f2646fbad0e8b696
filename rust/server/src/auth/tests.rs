//! Hellos and what becomes of them.

use pie_host::Value;
use tempfile::TempDir;

use super::records::tests::new;
use super::*;

struct Case {
    folder: TempDir,
    authority: Authority,
    audit: Audit,
    runtime: tokio::runtime::Runtime,
}

impl Case {
    fn new(mode: AuthMode, change: impl FnOnce(&mut AuthConfig, &Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = AuthConfig {
            mode,
            ..AuthConfig::default()
        };
        change(&mut config, folder.path());
        Self {
            authority: Authority::open(
                &config,
                folder.path(),
                SocketAddr::from(([127, 0, 0, 1], 80)),
            )
            .unwrap(),
            audit: Audit::open(None).unwrap(),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
            folder,
        }
    }

    fn judge(&self, claim: IdentityClaim, shown: &Presented) -> Result<Identity, Error> {
        match self
            .runtime
            .block_on(self.authority.judge(claim, shown, &self.audit))?
        {
            Verdict::In(identity) => Ok(identity),
            Verdict::Challenged(challenge) => panic!("{challenge:?}"),
        }
    }
}

fn here() -> Presented {
    let headers = tungstenite::http::HeaderMap::new();
    Presented::read(
        IpAddr::from([127, 0, 0, 1]),
        &headers,
        &AuthConfig::default(),
    )
    .unwrap()
}

fn texts(texts: &[&str]) -> Value {
    Value::Texts(texts.iter().map(|&text| text.to_owned()).collect())
}

fn with_key(key: &str) -> IdentityClaim {
    IdentityClaim {
        key: Some(key.to_owned()),
        ..IdentityClaim::default()
    }
}

#[test]
fn without_authentication_a_client_is_whoever_it_says() {
    let case = Case::new(AuthMode::Auto, |config, _| {
        config.set("operators", texts(&["root"])).unwrap();
    });
    let is = |user: Option<&str>| {
        let identity = case
            .judge(
                IdentityClaim {
                    user: user.map(str::to_owned),
                    ..IdentityClaim::default()
                },
                &here(),
            )
            .unwrap();
        (identity.user, identity.role)
    };
    assert_eq!(is(None), ("anonymous".to_owned(), Role::User));
    assert_eq!(is(Some("alice")), ("alice".to_owned(), Role::User));
    assert_eq!(is(Some("root")), ("root".to_owned(), Role::Operator));
    // A key that is given counts, and one that is no good is not passed over.
    let (_, text) = add_key(case.folder.path(), new("bob", Role::Read)).unwrap();
    assert_eq!(
        case.judge(with_key(&text.unwrap()), &here()).unwrap().role,
        Role::Read
    );
    assert_eq!(
        case.judge(with_key("pie_x"), &here()).unwrap_err().code,
        ErrorCode::AuthenticationFailed
    );
}

#[test]
fn a_name_of_elsewhere_is_refused_where_nobody_proves_anything() {
    let open = Case::new(AuthMode::Off, |_, _| ());
    let anonymous = Case::new(AuthMode::Off, |config, _| config.allow_anonymous = true);
    let keyed = Case::new(AuthMode::On, |_, folder| {
        add_key(folder, new("alice", Role::User)).unwrap();
    });
    let called = |case: &Case, host: Option<&str>| {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(header::HOST, host.parse().unwrap());
        }
        case.authority.check_called(&headers)
    };
    called(&open, None).unwrap();
    called(&open, Some("localhost:8080")).unwrap();
    called(&keyed, Some("evil.example")).unwrap();
    called(&anonymous, Some("evil.example")).unwrap();
    let long = format!("{}.example", "x".repeat(300));
    for host in ["evil.example:80", "", long.as_str()] {
        let error = called(&open, Some(host)).unwrap_err();
        assert_eq!(error.code, ErrorCode::ForbiddenOrigin, "{host}");
        assert!(error.message.contains("server.host_names"));
    }
}

#[test]
fn with_authentication_unknown_revoked_and_expired_keys_are_one() {
    let mut texts = Vec::new();
    let case = Case::new(AuthMode::On, |_, folder| {
        for n in 0..2 {
            let (key, text) = add_key(folder, new("alice", Role::User)).unwrap();
            if n == 1 {
                revoke_key(folder, &key.id).unwrap();
            }
            texts.extend(text);
        }
        let expiring = NewKey {
            expires_s: Some(60),
            ..new("alice", Role::User)
        };
        let (key, text) = add_key(folder, expiring).unwrap();
        texts.extend(text);
        // It expires in 1970 instead.
        let path = records::path(folder);
        let content = std::fs::read_to_string(&path).unwrap();
        std::fs::write(
            &path,
            content.replace(&key.expires.unwrap().to_string(), "1"),
        )
        .unwrap();
    });
    let nobody = case.judge(
        IdentityClaim {
            user: Some("alice".to_owned()),
            ..IdentityClaim::default()
        },
        &here(),
    );
    assert_eq!(nobody.unwrap_err().code, ErrorCode::AuthenticationRequired);
    let identity = case.judge(with_key(&texts[0]), &here()).unwrap();
    assert_eq!(
        (identity.user.as_str(), identity.role),
        ("alice", Role::User)
    );
    assert!(identity.check(Role::User, "x").is_ok());
    assert_eq!(
        identity.check(Role::Operator, "x").unwrap_err().code,
        ErrorCode::NotPermitted
    );
    let unknown = api_key::make().unwrap().text;
    let errors: Vec<Error> = [
        &texts[1],
        &texts[2],
        &unknown,
        "nonsense",
        &"k".repeat(1000),
    ]
    .into_iter()
    .map(|key| case.judge(with_key(key), &here()).unwrap_err())
    .collect();
    for error in &errors {
        assert_eq!(
            (error.code, &error.message, &error.details),
            (
                ErrorCode::AuthenticationFailed,
                &errors[0].message,
                &errors[0].details
            )
        );
    }
    let other = IdentityClaim {
        user: Some("bob".to_owned()),
        ..with_key(&texts[0])
    };
    assert!(
        case.judge(other, &here())
            .unwrap_err()
            .message
            .contains("leave the user out")
    );
    let both = IdentityClaim {
        public_key: Some("x".to_owned()),
        ..with_key(&texts[0])
    };
    assert_eq!(
        case.judge(both, &here()).unwrap_err().code,
        ErrorCode::InvalidArgument
    );
}

#[test]
fn a_bearer_is_a_key_and_many_bad_ones_have_to_wait() {
    let mut text = None;
    let case = Case::new(AuthMode::On, |_, folder| {
        text = add_key(folder, new("alice", Role::User)).unwrap().1
    });
    let mut shown = Presented {
        bearer: text,
        ..here()
    };
    assert_eq!(
        case.judge(IdentityClaim::default(), &shown).unwrap().user,
        "alice"
    );
    for _ in 0..10 {
        assert_eq!(
            case.judge(with_key("pie_no"), &here()).unwrap_err().code,
            ErrorCode::AuthenticationFailed
        );
    }
    let error = case.judge(IdentityClaim::default(), &shown).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitAttempts);
    assert!(error.details.contains("retry_after_ms"));
    shown.address = IpAddr::from([10, 0, 0, 1]);
    assert_eq!(
        case.judge(IdentityClaim::default(), &shown).unwrap().user,
        "alice"
    );
}

#[test]
fn a_proxy_decides_who_its_client_is() {
    let case = Case::new(AuthMode::Auto, |config, _| {
        let proxies = texts(&["127.0.0.1"]);
        config.set("trusted_proxies", proxies).unwrap();
        config.set("operators", texts(&["root"])).unwrap();
    });
    let shown = |user: &str| Presented {
        user: Some(user.to_owned()),
        ..here()
    };
    assert_eq!(
        case.judge(IdentityClaim::default(), &shown("alice"))
            .unwrap()
            .user,
        "alice"
    );
    assert_eq!(
        case.judge(with_key("ignored"), &shown("root"))
            .unwrap()
            .role,
        Role::Operator
    );
    let other = IdentityClaim {
        user: Some("bob".to_owned()),
        ..IdentityClaim::default()
    };
    assert_eq!(
        case.judge(other, &shown("alice")).unwrap_err().code,
        ErrorCode::AuthenticationFailed
    );
    assert_eq!(
        case.judge(IdentityClaim::default(), &here())
            .unwrap_err()
            .code,
        ErrorCode::AuthenticationRequired
    );
}

#[test]
fn a_public_key_needs_its_user_its_signature_and_its_record() {
    use base64::Engine as _;
    use ring::signature::Ed25519KeyPair;
    let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs";
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let case = Case::new(AuthMode::On, |config, folder| {
        config.set("host_names", texts(&["h:1"])).unwrap();
        add_key(
            folder,
            NewKey {
                public_key: Some(line.to_owned()),
                ..new("alice", Role::Operator)
            },
        )
        .unwrap();
    });
    let shown = Presented {
        host: "h:1".to_owned(),
        ..here()
    };
    let enter = |user: &str, host: &str| {
        let claim = IdentityClaim {
            user: Some(user.to_owned()),
            public_key: Some(line.to_owned()),
            key: None,
        };
        let verdict = case
            .runtime
            .block_on(case.authority.judge(claim, &shown, &case.audit))
            .unwrap();
        let Verdict::Challenged(challenge) = verdict else {
            panic!("{verdict:?}")
        };
        let message = format!("pie hello 1\n{host}\n{user}\n{}\n", challenge.nonce());
        let signature =
            base64::engine::general_purpose::STANDARD.encode(pair.sign(message.as_bytes()));
        case.runtime
            .block_on(
                case.authority
                    .judge_signature(&challenge, &signature, &shown, &case.audit),
            )
            .map(|identity| (identity.user, identity.role))
            .map_err(|error| error.code)
    };
    assert_eq!(
        enter("alice", "h:1"),
        Ok(("alice".to_owned(), Role::Operator))
    );
    assert_eq!(
        enter("alice", "evil:1"),
        Err(ErrorCode::AuthenticationFailed)
    );
    assert_eq!(enter("bob", "h:1"), Err(ErrorCode::AuthenticationFailed));
    // Another server, which hands on what this one asks, calls it by its own name.
    let relayed = Presented {
        host: "other:1".to_owned(),
        ..here()
    };
    let claim = IdentityClaim {
        user: Some("alice".to_owned()),
        public_key: Some(line.to_owned()),
        key: None,
    };
    assert_eq!(
        case.judge(claim, &relayed).unwrap_err().code,
        ErrorCode::InvalidArgument
    );
    let nameless = IdentityClaim {
        public_key: Some(line.to_owned()),
        ..IdentityClaim::default()
    };
    assert_eq!(
        case.judge(nameless, &shown).unwrap_err().code,
        ErrorCode::InvalidArgument
    );
}
