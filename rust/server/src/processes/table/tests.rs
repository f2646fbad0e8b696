//! The table with processes of a host, at moments that no client can choose.

use std::sync::{Arc, mpsc};

use pie_host::{Component, Event, Failure, Host, HostConfig, Launch, Serving};

use super::*;

#[allow(
    dead_code,
    reason = "the programs of the host's tests; these need one of them"
)]
#[path = "../../../../host/tests/host/guest.rs"]
mod guest;

const DAY: Duration = Duration::from_secs(86_400);

struct Ends(mpsc::Sender<Event>);

impl pie_host::Observer for Ends {
    fn stderr(&self, _: u64, _: &str) {}

    fn ended(&self, _: u64, last: &Event) {
        self.0.send(last.clone()).unwrap();
    }
}

/// A table of at most so many processes that live.
fn table(most_live: usize) -> Table {
    let config = ServerConfig {
        detached: Some(DAY),
        ..ServerConfig::new(std::path::PathBuf::new())
    };
    Table::new(&config, most_live)
}

fn reserve(table: &mut Table, user: &str) -> Result<bool, Error> {
    reserve_at(table, user, None)
}

fn reserve_at(table: &mut Table, user: &str, address: Option<Address>) -> Result<bool, Error> {
    let asking = Asking { user, address };
    table.reserve(asking, &mut WaitsFor::default(), Instant::now())
}

fn at(last: u8) -> Option<Address> {
    Some(std::net::IpAddr::from([192, 0, 2, last]).into())
}

/// A program that spins.
fn spinning() -> Vec<u8> {
    guest::plain_bytes(
        r#"(func (export "run") (param i32 i32) (result i32) (loop $again (br $again)) (unreachable))"#,
    )
}

/// A program that spins, and its end; it does not stand in the table.
fn launched(host: &Host, table: &mut Table) -> (Entry, mpsc::Receiver<Event>) {
    launched_by(host, table, "alice", spinning())
}

/// A program of a user that has begun to wait for a message, which stands in the table, detached and without a client.
fn waiting(host: &Host, table: &mut Table, user: &str) -> (u64, mpsc::Receiver<Event>) {
    waiting_at(host, table, user, None)
}

/// The same, of a client of that address, where addresses are counted.
fn waiting_at(
    host: &Host,
    table: &mut Table,
    user: &str,
    address: Option<Address>,
) -> (u64, mpsc::Receiver<Event>) {
    let (mut entry, ends) = launched_by(host, table, user, guest::talking_bytes(guest::ECHO));
    let (pid, process) = (entry.process.pid(), entry.process.clone());
    entry.detached = true;
    entry.address = address;
    table.insert(entry);
    uses_more_than(Duration::ZERO, &process);
    (pid, ends)
}

/// Waits until the process has used some more time.
fn works(process: &ServedProcess) {
    uses_more_than(process.cpu(), process);
}

fn uses_more_than(before: Duration, process: &ServedProcess) {
    let deadline = Instant::now() + guest::PATIENCE;
    while process.cpu() == before {
        assert!(Instant::now() < deadline, "a process does nothing");
        std::thread::yield_now();
    }
}

/// A program of a user, and its end; it does not stand in the table.
fn launched_by(
    host: &Host,
    table: &mut Table,
    user: &str,
    component: Vec<u8>,
) -> (Entry, mpsc::Receiver<Event>) {
    let launch = Launch::new(Component::new(component), "null".to_owned());
    let (sender, ends) = mpsc::channel();
    assert!(reserve(table, user).unwrap());
    let serving = Serving {
        kept_bytes: 1000,
        log_bytes: 0,
        window_bytes: None,
        observer: Arc::new(Ends(sender)),
    };
    let (process, _) = host.launch_served(launch, None, serving).unwrap();
    let entry = Entry {
        place: 0,
        user: user.to_owned(),
        address: None,
        label: "a program".to_owned(),
        name: None,
        process,
        detached: false,
        holder: None,
        grace_until: None,
        started_s: 0.0,
        end: None,
        still: Still::new(Instant::now()),
    };
    (entry, ends)
}

/// What is said of the end of a program that was told to end.
fn ended(ends: &mpsc::Receiver<Event>) -> String {
    failed(ends).message
}

fn failed(ends: &mpsc::Receiver<Event>) -> Failure {
    let Event::Error(failure) = ends.recv_timeout(guest::PATIENCE).unwrap() else {
        panic!("a program that was told to end has returned");
    };
    failure
}

/// The process has ended, as its host tells the table.
fn told_of_the_end(table: &mut Table, pid: u64) {
    let end = End {
        at: Instant::now(),
        at_s: 0.0,
        exit: "limit-processes".to_owned(),
        last_bytes: 0,
    };
    table.end(pid, end);
}

#[test]
fn a_launch_that_is_under_way_when_all_are_cancelled_is_cancelled_too() {
    let host = Host::new(HostConfig::default()).unwrap();
    let mut table = table(8);
    let (entry, ends) = launched(&host, &mut table);
    table.cancel_all("all shall end");
    table.insert(entry);
    assert_eq!(ended(&ends), "all shall end");
    let refused = reserve(&mut table, "bob").unwrap_err();
    assert_eq!(refused.code, ErrorCode::ServerDraining);
}

#[test]
fn clients_that_come_and_go_leave_one_time_of_grace() {
    let host = Host::new(HostConfig::default()).unwrap();
    let mut table = table(8);
    let (entry, ends) = launched(&host, &mut table);
    let pid = entry.process.pid();
    table.insert(entry);
    let start = Instant::now();
    let grace = Duration::from_secs(60);
    for n in 0..1000 {
        table.hold(pid, ConnectionId(n));
        table.orphan(ConnectionId(n), start + Duration::from_millis(n), grace);
    }
    assert_eq!(table.grace.len(), 1);
    // The last one counts.
    assert_eq!(
        table.sweep(start + grace),
        Some(start + Duration::from_millis(999) + grace)
    );
    table.hold(pid, ConnectionId(0));
    assert_eq!(table.sweep(start + 2 * grace), None);
    table.orphan(ConnectionId(0), start + 2 * grace, grace);
    assert_eq!(table.sweep(start + 3 * grace), None);
    assert!(ended(&ends).contains("server.grace_s"));
}

#[test]
fn whoever_has_the_most_gives_way_where_every_place_is_taken() {
    let host = Host::new(HostConfig::default()).unwrap();
    let mut table = table(5);
    let greedy: Vec<_> = (0..4)
        .map(|_| waiting(&host, &mut table, "alice"))
        .collect();
    let (bobs, _bob) = waiting(&host, &mut table, "bob");
    let start = Instant::now();
    // The first has a client, and the third has stood still for longer than the others.
    table.hold(greedy[0].0, ConnectionId(1));
    assert_eq!(table.sweep(start), Some(start + Duration::from_secs(60)));
    let stillest = greedy[2].0;
    table.entries.get_mut(&stillest).unwrap().still.since =
        start.checked_sub(Duration::from_secs(30)).unwrap();
    let mut waits_for = WaitsFor::default();
    let carol = Asking {
        user: "carol",
        address: None,
    };
    assert!(!table.reserve(carol, &mut waits_for, start).unwrap());
    // Asking again ends nobody else's.
    assert!(!table.reserve(carol, &mut waits_for, start).unwrap());
    let told = failed(&greedy[2].1);
    assert_eq!(told.code.as_deref(), Some("limit-processes"));
    assert!(
        told.message.contains("engine.max_processes"),
        "{}",
        told.message
    );
    told_of_the_end(&mut table, stillest);
    assert!(table.reserve(carol, &mut waits_for, start).unwrap());
    // Alice has three, and bob would have two.
    assert!(!reserve(&mut table, "bob").unwrap());
    // Alice has two by then, and dave would have one; after that nobody has more than another one would.
    assert!(!reserve(&mut table, "dave").unwrap());
    let refused = reserve(&mut table, "dave").unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitProcesses);
    assert!(
        refused.message.contains("engine.max_processes"),
        "{refused}"
    );
    assert!(
        table
            .entry(greedy[0].0)
            .unwrap()
            .process
            .outcome()
            .is_none()
    );
    assert!(table.entry(bobs).unwrap().process.outcome().is_none());
}

/// Anybody can make up names, and have one process of each.
#[test]
fn names_of_one_address_give_way_to_clients_of_another() {
    let host = Host::new(HostConfig::default()).unwrap();
    let mut table = table(4);
    let made_up: Vec<_> = (0..4)
        .map(|n| waiting_at(&host, &mut table, &format!("name {n}"), at(1)))
        .collect();
    let refused = |asked: Result<bool, Error>| asked.unwrap_err().code;
    // One more name of the same address has none, and where addresses are not counted nothing gives way.
    assert_eq!(
        refused(reserve_at(&mut table, "name 4", at(1))),
        ErrorCode::LimitProcesses
    );
    assert_eq!(
        refused(reserve(&mut table, "bob")),
        ErrorCode::LimitProcesses
    );
    let gives_way = |table: &Table| {
        let mut live = table.entries.values().filter(|entry| entry.end.is_none());
        let ending = live.find(|entry| entry.still.gives_way());
        ending.map(|entry| entry.process.pid())
    };
    assert_eq!(gives_way(&table), None);
    let mut others = Vec::new();
    for user in ["bob", "carol"] {
        assert!(!reserve_at(&mut table, user, at(2)).unwrap());
        let pid = gives_way(&table).unwrap();
        let (_, ends) = made_up.iter().find(|(made_up, _)| *made_up == pid).unwrap();
        let told = failed(ends);
        assert_eq!(told.code.as_deref(), Some("limit-processes"));
        assert!(
            told.message.contains("an address that has fewer"),
            "{told:?}"
        );
        told_of_the_end(&mut table, pid);
        others.push(waiting_at(&host, &mut table, user, at(2)));
    }
    // Both addresses have two by then.
    assert_eq!(
        refused(reserve_at(&mut table, "dave", at(2))),
        ErrorCode::LimitProcesses
    );
    assert_eq!(
        refused(reserve_at(&mut table, "name 4", at(1))),
        ErrorCode::LimitProcesses
    );
    // What a program launches for itself counts where its user's was launched.
    assert_eq!(table.address_of("carol"), at(2));
    assert_eq!(table.address_of("nobody"), None);
}

/// Each request to a program that anybody may ask can leave a process that has ended.
#[test]
fn requests_to_one_program_leave_what_others_of_its_user_have_left() {
    let host = Host::new(HostConfig::default()).unwrap();
    let config = ServerConfig {
        max_ended_processes: 4,
        ..ServerConfig::new(std::path::PathBuf::new())
    };
    let mut table = Table::new(&config, 8);
    let left = |table: &mut Table, user: &str, label: &str| {
        let (mut entry, ends) = launched_by(&host, table, user, spinning());
        entry.label = label.to_owned();
        let process = entry.process.clone();
        table.insert(entry);
        process.cancel("it is enough");
        assert_eq!(ended(&ends), "it is enough");
        told_of_the_end(table, process.pid());
        process.pid()
    };
    let others = ["bob", "alice"].map(|user| left(&mut table, user, "own@1"));
    let asked = [0; 6].map(|_| left(&mut table, "alice", "open@1"));
    assert!(others.iter().all(|pid| table.knows(*pid)));
    let kept = asked.map(|pid| table.knows(pid));
    assert_eq!(kept, [false, false, false, false, true, true]);
    // Where programs have as many, the one with the oldest gives way.
    let later = ["later@1", "last@1"].map(|label| left(&mut table, "alice", label));
    assert!(later.iter().all(|pid| table.knows(*pid)));
    assert_eq!(others.map(|pid| table.knows(pid)), [true, false]);
    assert_eq!(table.counts(), (0, 4));
}

#[test]
fn a_detached_process_that_stands_still_ends_when_its_user_has_gone() {
    let host = Host::new(HostConfig::default()).unwrap();
    let (mut table, start) = (table(8), Instant::now());
    let (still, ends) = waiting(&host, &mut table, "alice");
    let (mut entry, _bobs_end) = launched_by(&host, &mut table, "bob", spinning());
    entry.detached = true;
    let (busy, busy_process) = (entry.process.pid(), entry.process.clone());
    table.insert(entry);
    // As long as a client of the user is there it stays, whoever that client is attached to.
    table.connect("alice", start);
    let mut day = 0;
    let mut sweep = |table: &mut Table| {
        day += 1;
        works(&busy_process);
        table.sweep(start + day * DAY)
    };
    for _ in 0..3 {
        assert!(sweep(&mut table).is_some());
    }
    table.disconnect("alice", start + 3 * DAY);
    let alive = |table: &Table, pid| !table.entry(pid).unwrap().still.gives_way();
    assert!(alive(&table, still));
    // What it does until it has come to a stand counts as work.
    for _ in 0..100 {
        if alive(&table, still) {
            sweep(&mut table);
        }
    }
    let told = ended(&ends);
    assert!(told.contains("server.detached_s = 86400 s"), "{told}");
    // One that works goes on for ever.
    assert!(alive(&table, busy));
}

#[test]
fn a_detached_process_stands_still_for_ever_where_that_is_set() {
    let host = Host::new(HostConfig::default()).unwrap();
    let config = ServerConfig {
        detached: None,
        ..ServerConfig::new(std::path::PathBuf::new())
    };
    let mut table = Table::new(&config, 8);
    let (pid, _ends) = waiting(&host, &mut table, "alice");
    let start = Instant::now();
    for day in 1..4 {
        assert_eq!(table.sweep(start + 365 * day * DAY), None);
    }
    assert!(!table.entry(pid).unwrap().still.gives_way());
}
