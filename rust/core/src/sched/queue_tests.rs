//! Who runs next.

use proptest::prelude::*;

use super::*;
use crate::ids::{ContextId, ProcessId, RequestId};

const LIMITS: Limits = Limits {
    n_tokens: 16,
    n_sequences: 8,
    prefill_chunk: 8,
};

fn ticket(request: u64, process: u64, n_tokens: u32) -> Ticket {
    Ticket {
        context: ContextId(request),
        request: RequestId(request),
        process: ProcessId(process),
        n_tokens,
        arrival: request,
        served: 0,
    }
}

/// Plans and answers (request, tokens) in order; what has more to do goes back into the queue.
fn plan(queue: &mut Queue, limits: Limits, number: u64) -> Vec<(u64, u32)> {
    let mut planned = Vec::new();
    queue.plan(limits, true, |ticket, n| {
        planned.push((*ticket, n));
        Admission::Planned
    });
    for (ticket, n) in &planned {
        if ticket.n_tokens > *n {
            queue.push(Ticket {
                n_tokens: ticket.n_tokens - n,
                served: number,
                ..*ticket
            });
        }
    }
    planned
        .iter()
        .map(|(ticket, n)| (ticket.request.0, *n))
        .collect()
}

fn queue(tickets: &[Ticket]) -> Queue {
    let mut queue = Queue::default();
    tickets.iter().for_each(|ticket| queue.push(*ticket));
    queue
}

#[test]
fn decodes_come_first_and_prefills_share_the_rest() {
    let mut queue = queue(&[
        ticket(1, 1, 30),
        ticket(2, 2, 1),
        ticket(3, 3, 5),
        ticket(4, 4, 1),
    ]);
    assert_eq!(
        plan(&mut queue, LIMITS, 1),
        [(2, 1), (4, 1), (1, 8), (3, 5)]
    );
    assert_eq!(plan(&mut queue, LIMITS, 2), [(1, 8)]);
    assert_eq!(
        plan(
            &mut queue,
            Limits {
                n_tokens: 3,
                ..LIMITS
            },
            3
        ),
        [(1, 3)]
    );
}

#[test]
fn processes_take_turns() {
    // Process 1 came first with three long prefills; the single one of process 2 does not wait for them.
    let mut queue = queue(&[
        ticket(1, 1, 16),
        ticket(2, 1, 16),
        ticket(3, 1, 16),
        ticket(4, 2, 16),
    ]);
    let one = Limits {
        n_tokens: 8,
        ..LIMITS
    };
    let served: Vec<u64> = (1..=8)
        .flat_map(|number| plan(&mut queue, one, number))
        .map(|(request, _)| request)
        .collect();
    assert_eq!(served, [1, 4, 1, 4, 2, 2, 3, 3]);
}

#[test]
fn decodes_that_do_not_all_fit_take_turns() {
    let mut queue = queue(&[
        ticket(1, 1, 1),
        ticket(2, 1, 1),
        ticket(3, 1, 1),
        ticket(4, 2, 1),
    ]);
    let two = Limits {
        n_sequences: 2,
        ..LIMITS
    };
    let mut served = Vec::new();
    for number in 1..=4 {
        for (request, _) in plan(&mut queue, two, number) {
            served.push(request);
            queue.push(Ticket {
                served: number,
                ..ticket(request, if request == 4 { 2 } else { 1 }, 1)
            });
        }
    }
    assert_eq!(served, [1, 4, 2, 4, 3, 4, 1, 4]);
}

#[test]
fn a_prefill_passed_over_too_often_goes_first() {
    let mut queue = queue(&[ticket(1, 1, 4)]);
    let one = Limits {
        n_sequences: 1,
        ..LIMITS
    };
    for number in 1.. {
        queue.push(ticket(10 + number, 2, 1));
        let served = plan(&mut queue, one, number);
        assert_eq!(served.len(), 1);
        if served == [(1, 4)] {
            assert_eq!(number, 5);
            return;
        }
        assert!(number < 10, "the prefill starves");
    }
}

#[test]
fn a_refused_prefill_keeps_younger_ones_back_only_while_others_run() {
    let refuse_first = |queue: &mut Queue, idle: bool| {
        let mut planned = Vec::new();
        queue.plan(LIMITS, idle, |ticket, _| {
            if ticket.request.0 == 1 {
                return Admission::Refused;
            }
            planned.push(ticket.request.0);
            Admission::Planned
        });
        planned
    };
    let tickets = [ticket(1, 1, 4), ticket(2, 2, 4), ticket(3, 3, 4)];
    assert_eq!(refuse_first(&mut queue(&tickets), false), Vec::<u64>::new());
    assert_eq!(refuse_first(&mut queue(&tickets), true), [2]);
    let mut with_decode = queue(&tickets);
    with_decode.push(ticket(4, 4, 1));
    assert_eq!(refuse_first(&mut with_decode, true), [4]);
}

proptest! {
    /// Nothing is lost, planned twice, or planned beyond the limits, and everything is served in the end.
    #[test]
    fn every_request_is_served_within_the_limits(
        sizes in prop::collection::vec((1u64..4, 1u32..20), 1..40),
        n_tokens in 1u32..12, n_sequences in 1u32..6, prefill_chunk in 1u32..10,
    ) {
        let limits = Limits { n_tokens, n_sequences, prefill_chunk };
        let mut queue = Queue::default();
        let mut left: Vec<u32> = Vec::new();
        for (request, (process, size)) in sizes.iter().enumerate() {
            queue.push(ticket(request as u64, *process, *size));
            left.push(*size);
        }
        let mut number = 0;
        while queue.len() > 0 {
            number += 1;
            let planned = plan(&mut queue, limits, number);
            prop_assert!(!planned.is_empty());
            prop_assert!(planned.len() <= n_sequences as usize);
            prop_assert!(planned.iter().map(|(_, n)| n).sum::<u32>() <= n_tokens);
            for (request, n) in planned {
                prop_assert!(n > 0 && n <= prefill_chunk.max(1) && n <= left[request as usize]);
                left[request as usize] -= n;
            }
        }
        prop_assert!(left.iter().all(|&n| n == 0));
    }
}

#[test]
fn nothing_is_remembered_of_a_process_that_ended() {
    let limits = Limits {
        n_tokens: 8,
        ..LIMITS
    };
    let mut queue = queue(&[ticket(1, 1, 50), ticket(2, 2, 50)]);
    assert_eq!(plan(&mut queue, limits, 1), [(1, 8)]);
    assert_eq!(plan(&mut queue, limits, 2), [(2, 8)]);
    queue.remove(RequestId(2));
    queue.forget(ProcessId(2));
    // It is the turn of process 1, unless process 2 is a new one.
    queue.push(ticket(3, 2, 50));
    assert_eq!(plan(&mut queue, limits, 3), [(3, 8)]);
}
