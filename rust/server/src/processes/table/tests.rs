//! The table with processes of a host, at moments that no client can choose.

use std::sync::mpsc;

use pie_host::{Component, HostConfig};

use super::*;

#[allow(
    dead_code,
    reason = "the programs of the host's tests; these need one of them"
)]
#[path = "../../../../host/tests/host/guest.rs"]
mod guest;

struct Ends(mpsc::Sender<Event>);

impl pie_host::Observer for Ends {
    fn stderr(&self, _: u64, _: &str) {}

    fn ended(&self, _: u64, last: &Event) {
        self.0.send(last.clone()).unwrap();
    }
}

#[test]
fn a_launch_that_is_under_way_when_all_are_cancelled_is_cancelled_too() {
    let host = Host::new(HostConfig::default()).unwrap();
    let spinning = guest::plain_bytes(
        r#"(func (export "run") (param i32 i32) (result i32) (loop $again (br $again)) (unreachable))"#,
    );
    let launch = Launch::new(Component::new(spinning), "null".to_owned());
    let mut table = Table::new(&ServerConfig::new(std::path::PathBuf::new()));
    let (sender, ends) = mpsc::channel();
    table.reserve("alice").unwrap();
    let serving = Serving {
        kept_bytes: 1000,
        log_bytes: 0,
        window_bytes: None,
        observer: Arc::new(Ends(sender)),
    };
    let (process, _) = host.launch_served(launch, serving).unwrap();
    table.cancel_all("all shall end");
    table.insert(Entry {
        place: 0,
        user: "alice".to_owned(),
        label: "spinning".to_owned(),
        process,
        detached: true,
        holder: None,
        grace_until: None,
        started_s: 0.0,
        end: None,
    });
    let Event::Error(failure) = ends.recv_timeout(guest::PATIENCE).unwrap() else {
        panic!("a program that spins has returned");
    };
    assert_eq!(failure.message, "all shall end");
    let refused = table.reserve("bob").unwrap_err();
    assert_eq!(refused.code, ErrorCode::ServerDraining);
}
