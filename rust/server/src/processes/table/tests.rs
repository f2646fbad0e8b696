//! The table with processes of a host, at moments that no client can choose.

use std::sync::{Arc, mpsc};

use pie_host::{Component, Event, Host, HostConfig, Launch, Serving};

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

/// A program that spins, and its end; it does not stand in the table.
fn launched(host: &Host, table: &mut Table) -> (Entry, mpsc::Receiver<Event>) {
    let spinning = guest::plain_bytes(
        r#"(func (export "run") (param i32 i32) (result i32) (loop $again (br $again)) (unreachable))"#,
    );
    let launch = Launch::new(Component::new(spinning), "null".to_owned());
    let (sender, ends) = mpsc::channel();
    table.reserve("alice").unwrap();
    let serving = Serving {
        kept_bytes: 1000,
        log_bytes: 0,
        window_bytes: None,
        observer: Arc::new(Ends(sender)),
    };
    let (process, _) = host.launch_served(launch, None, serving).unwrap();
    let entry = Entry {
        place: 0,
        user: "alice".to_owned(),
        label: "spinning".to_owned(),
        process,
        detached: false,
        holder: None,
        grace_until: None,
        started_s: 0.0,
        end: None,
    };
    (entry, ends)
}

/// What is said of the end of a program that spins.
fn ended(ends: &mpsc::Receiver<Event>) -> String {
    let Event::Error(failure) = ends.recv_timeout(guest::PATIENCE).unwrap() else {
        panic!("a program that spins has returned");
    };
    failure.message
}

#[test]
fn a_launch_that_is_under_way_when_all_are_cancelled_is_cancelled_too() {
    let host = Host::new(HostConfig::default()).unwrap();
    let mut table = Table::new(&ServerConfig::new(std::path::PathBuf::new()));
    let (entry, ends) = launched(&host, &mut table);
    table.cancel_all("all shall end");
    table.insert(entry);
    assert_eq!(ended(&ends), "all shall end");
    let refused = table.reserve("bob").unwrap_err();
    assert_eq!(refused.code, ErrorCode::ServerDraining);
}

#[test]
fn clients_that_come_and_go_leave_one_time_of_grace() {
    let host = Host::new(HostConfig::default()).unwrap();
    let mut table = Table::new(&ServerConfig::new(std::path::PathBuf::new()));
    let (entry, ends) = launched(&host, &mut table);
    let pid = entry.process.pid();
    table.insert(entry);
    let start = Instant::now();
    let grace = Duration::from_secs(60);
    for n in 0..1000 {
        table.hold(pid, ConnectionId(n));
        table.orphan(ConnectionId(n), start + Duration::from_millis(n) + grace);
    }
    assert_eq!(table.grace.len(), 1);
    // The last one counts.
    assert_eq!(
        table.sweep(start + grace),
        Some(start + Duration::from_millis(999) + grace)
    );
    table.hold(pid, ConnectionId(0));
    assert_eq!(table.sweep(start + 2 * grace), None);
    table.orphan(ConnectionId(0), start + 3 * grace);
    assert_eq!(table.sweep(start + 3 * grace), None);
    assert!(ended(&ends).contains("server.grace_s"));
}
