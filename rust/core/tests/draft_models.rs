//! Another model drafts: a generation waits for its drafts, and a context of the other model follows.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use pie_core::{
    Answer, ContextId, DraftEvent, Drafting, DraftsWanted, Error, ErrorCode, FinishReason,
    GeneratorId, GeneratorOptions, Method, Output, ProcessId, RequestId, Submission, TokenBudget,
};
use proptest::prelude::*;
use support::world::{World, config, expected, options, output, prompt};

fn world() -> World {
    World::with_process(config(), 7)
}

fn drafted(method: Method) -> GeneratorOptions {
    GeneratorOptions {
        drafting: Drafting::Host,
        ..options(method)
    }
}

fn generator(world: &mut World, made: GeneratorOptions) -> (ContextId, GeneratorId) {
    let context = world.context(&prompt(10, 1));
    (context, world.engine.new_generator(context, made).unwrap())
}

/// What befalls a generator that is drafted for.
type Act = fn(&mut World, ContextId, GeneratorId);

/// What a program wants drafts for, as they come.
fn wanted(world: &mut World) -> Option<DraftsWanted> {
    let events = world.engine.drain_draft_events();
    let mut wanted = events.into_iter().filter_map(|event| match event {
        DraftEvent::Wanted(_, wanted) => Some(wanted),
        DraftEvent::Unwanted(_) | DraftEvent::Ended(_) => None,
    });
    wanted.next_back()
}

/// Runs a request, for which `draft` drafts.
fn drive(
    world: &mut World,
    request: RequestId,
    mut draft: impl FnMut(&DraftsWanted) -> Vec<u32>,
) -> Result<Answer, Error> {
    loop {
        world.pump();
        let Some(wanted) = wanted(world) else {
            return world.wait(request);
        };
        assert_eq!(wanted.request, request);
        let drafts = draft(&wanted);
        let drafts = Ok(&drafts[..]);
        world.engine.give_drafts(request, wanted.length(), drafts);
        world.check();
    }
}

/// What the other model knows of the context.
#[derive(Default)]
struct Mirror(Vec<u32>);

impl Mirror {
    fn follow(&mut self, wanted: &DraftsWanted) {
        assert!(wanted.n_known as usize <= self.0.len());
        self.0.truncate(wanted.n_known as usize);
        self.0.extend(&wanted.tokens);
    }
}

fn run(world: &mut World, id: GeneratorId, draft: impl FnMut(&DraftsWanted) -> Vec<u32>) -> Output {
    let request = world.submit(Submission::Run(id)).unwrap();
    output(drive(world, request, draft).unwrap())
}

// rows: RS-074
#[test]
fn drafts_that_are_drawn_are_accepted_and_become_more() {
    let mut world = world();
    let tokens = expected(&prompt(10, 1), 40);
    let made = GeneratorOptions {
        max_tokens: Some(40),
        ..drafted(Method::Argmax)
    };
    let (_, id) = generator(&mut world, made);
    let (mut mirror, mut wanted_of) = (Mirror::default(), Vec::new());
    let answer = run(&mut world, id, |wanted| {
        mirror.follow(wanted);
        wanted_of.push(wanted.n_drafts);
        let n_drawn = mirror.0.len() - 10;
        assert_eq!(mirror.0[10..], tokens[..n_drawn]);
        tokens[n_drawn..n_drawn + wanted.n_drafts as usize].to_vec()
    });
    assert_eq!(
        (&answer.tokens, answer.finish),
        (&tokens, Some(FinishReason::Length))
    );
    // The last one wants no more than are of use.
    assert_eq!(wanted_of, [2, 4, 8, 8, 8, 4]);
    let speculation = answer.speculation;
    assert_eq!((speculation.n_drafted, speculation.n_accepted), (34, 34));
    assert_eq!(world.engine.stats().n_batches, 6);
}

// rows: RS-074
#[test]
fn who_has_no_drafts_to_give_is_asked_less_and_told_all_again() {
    let mut world = world();
    let made = GeneratorOptions {
        max_tokens: Some(200),
        ..drafted(Method::Argmax)
    };
    let (_, id) = generator(&mut world, made);
    let mut n_asked = 0;
    let answer = run(&mut world, id, |wanted| {
        n_asked += 1;
        assert_eq!(wanted.n_known, 0);
        // Another vocabulary draws these.
        vec![50; n_asked % 3]
    });
    assert_eq!(answer.tokens, expected(&prompt(10, 1), 200));
    assert_eq!(answer.speculation.n_drafted, 0);
    assert!(n_asked < 10, "{n_asked}");
}

// rows: RS-074
#[test]
fn what_is_cancelled_while_it_is_drafted_for_is_done_again() {
    let mut world = world();
    let (_, id) = generator(&mut world, drafted(Method::Argmax));
    assert_eq!(world.engine.next_step(id).unwrap(), Some(0));
    let request = world.submit(Submission::Step(id)).unwrap();
    let first = wanted(&mut world).unwrap();
    assert!(!world.plan());
    world.engine.cancel(request);
    assert_eq!(
        world.engine.drain_draft_events(),
        [DraftEvent::Unwanted(id)]
    );
    // Drafts that come too late are of no use.
    let late = Ok(&[1, 2][..]);
    world.engine.give_drafts(request, first.length(), late);
    assert_eq!(world.engine.next_step(id).unwrap(), Some(0));
    let request = world.submit(Submission::Step(id)).unwrap();
    let tokens = expected(&prompt(10, 1), 3);
    let answer = drive(&mut world, request, |wanted| {
        assert_eq!((wanted.n_known, &wanted.tokens), (0, &first.tokens));
        tokens[..2].to_vec()
    });
    assert_eq!(output(answer.unwrap()).tokens, tokens);
}

// rows: RS-074
#[test]
fn nobody_drafts_for_what_ended() {
    let cases: [(&str, Act); 4] = [
        ("released", |world, context, _| {
            world.engine.release(context);
        }),
        ("replaced", |world, context, _| {
            world.generator(context, 3);
        }),
        ("dropped", |world, _, id| world.engine.drop_generator(id)),
        ("its process ended", |world, _, _| {
            world.engine.end_process(ProcessId(1));
        }),
    ];
    for (name, end) in cases {
        let mut world = world();
        let (context, id) = generator(&mut world, drafted(Method::Argmax));
        end(&mut world, context, id);
        let events = world.engine.drain_draft_events();
        assert!(events.contains(&DraftEvent::Ended(id)), "{name}");
        world.check();
    }
}

// rows: RS-074
#[test]
fn a_pass_that_is_drafted_for_fails_with_its_context_and_with_the_model() {
    let mut world = world();
    let (context, id) = generator(&mut world, drafted(Method::Argmax));
    let request = world.submit(Submission::Run(id)).unwrap();
    world.engine.release(context);
    let error = world.wait(request).unwrap_err();
    assert_eq!(error.code, ErrorCode::ContextReleased);
    let (_, id) = generator(&mut world, drafted(Method::Argmax));
    let request = world.submit(Submission::Run(id)).unwrap();
    let refusal = Error::new(ErrorCode::ModelUnavailable, "its driver cannot be started");
    world.engine.refuse(Some(refusal));
    let error = world.wait(request).unwrap_err();
    assert_eq!(error.code, ErrorCode::ModelUnavailable);
}

/// How many tokens a step accepts can be seen, so a step for which nobody could draft fails, and is the same when it is
/// run again. A run to the end shows no steps.
#[test]
fn a_step_fails_with_what_kept_another_model_from_drafting() {
    let lost = || Error::new(ErrorCode::DriverLost, "its driver was lost");
    let fail = |world: &mut World, request| {
        let length = wanted(world).unwrap().length();
        world.engine.give_drafts(request, length, Err(lost()));
        world.check();
    };
    let mut world = world();
    let (context, id) = generator(&mut world, drafted(Method::Argmax));
    let tokens = expected(&prompt(10, 1), 12);
    for n_failures in [0, 1, 3] {
        for _ in 0..n_failures {
            assert!(world.engine.next_step(id).unwrap().is_some());
            let before = world.engine.tail(context, 100).unwrap();
            let request = world.submit(Submission::Step(id)).unwrap();
            fail(&mut world, request);
            assert_eq!(world.wait(request).unwrap_err(), lost());
            assert_eq!(world.engine.tail(context, 100).unwrap(), before);
        }
        assert!(world.engine.next_step(id).unwrap().is_some());
        let request = world.submit(Submission::Step(id)).unwrap();
        let answer = output(
            drive(&mut world, request, |wanted| {
                if n_failures > 0 {
                    // What was told to who failed is told again.
                    assert_eq!(wanted.n_known, 0);
                }
                vec![tokens[wanted.length() as usize - 10]]
            })
            .unwrap(),
        );
        assert_eq!(answer.tokens.len(), 2);
    }
    assert_eq!(world.engine.tail(context, 6).unwrap(), tokens[..6]);
    world.engine.set_max_tokens(id, 12).unwrap();
    let request = world.submit(Submission::Run(id)).unwrap();
    fail(&mut world, request);
    let answer = drive(&mut world, request, |_| Vec::new());
    assert_eq!(output(answer.unwrap()).tokens, tokens[6..]);
}

/// When another model drafts depends on load. What a program may have beside it does not.
#[test]
fn what_drafts_takes_no_room_of_requests_and_generators() {
    let mut world = World::with_process(
        pie_core::EngineConfig {
            max_contexts: 3,
            max_process_contexts: 2,
            max_user_contexts: 2,
            max_waiting: 2,
            max_process_waiting: 1,
            ..config()
        },
        7,
    );
    let drafts = world.engine.new_draft_context(ProcessId(1)).unwrap();
    world.engine.follow(drafts, 0, &prompt(10, 1)).unwrap();
    let context = world.context(&prompt(9, 2));
    // Two contexts have eight generators.
    let full: Vec<GeneratorId> = std::iter::from_fn(|| {
        let made = options(Method::Argmax);
        world.engine.new_generator(context, made).ok()
    })
    .take(100)
    .collect();
    assert_eq!(full.len(), 8);
    let waiting = world.submit(Submission::Flush(context)).unwrap();
    for _ in 0..3 {
        let made = GeneratorOptions {
            max_tokens: Some(2),
            ..options(Method::Argmax)
        };
        let drafting = world.engine.new_generator(drafts, made).unwrap();
        let run = world.submit(Submission::Run(drafting)).unwrap();
        world.check();
        let drawn = output(world.wait(run).unwrap());
        assert_eq!(drawn.tokens, expected(&prompt(10, 1), 2));
        world.engine.drop_generator(drafting);
        world.engine.follow(drafts, 0, &prompt(10, 1)).unwrap();
        world.check();
    }
    world.wait(waiting).unwrap();
    // The other way round, too.
    let drafting = world
        .engine
        .new_generator(drafts, options(Method::Argmax))
        .unwrap();
    world.engine.drop_generator(full[0]);
    let made = world.engine.new_generator(context, options(Method::Argmax));
    world.submit(Submission::Run(drafting)).unwrap();
    made.unwrap();
    let request = world.submit(Submission::Flush(context)).unwrap();
    world.engine.release(drafts);
    world.check();
    world.wait(request).unwrap();
    world.engine.end_process(ProcessId(1));
    world.check();
}

// rows: RS-074
#[test]
fn a_context_follows_and_keeps_what_is_alike() {
    let mut world = world();
    let budget = TokenBudget::new(12);
    world.engine.set_token_budget(ProcessId(1), budget.clone());
    let id = world.engine.new_draft_context(ProcessId(1)).unwrap();
    let mut tokens = prompt(30, 1);
    world.engine.follow(id, 0, &tokens).unwrap();
    world.flush(id).unwrap();
    let n_before = world.engine.stats().n_tokens;
    for (n_known, n_alike, n_new) in [(30, 30, 3), (20, 25, 4), (0, 7, 2), (9, 9, 0), (3, 3, 9)] {
        let new = prompt(n_new, 2);
        tokens.truncate(n_alike);
        tokens.extend(&new);
        let behind = &tokens[n_known..];
        world.engine.follow(id, n_known as u32, behind).unwrap();
        assert_eq!(world.engine.tail(id, 100).unwrap(), tokens);
        let made = GeneratorOptions {
            max_tokens: Some(3),
            seed: Some(1),
            ..options(Method::Argmax)
        };
        let generator = world.engine.new_generator(id, made).unwrap();
        let drawn = world.run(generator).unwrap().tokens;
        assert_eq!(drawn, expected(&tokens, 3));
        world.engine.drop_generator(generator);
        // Those that were drawn are drafts: what is told next says whether they stay.
        tokens.extend(&drawn);
    }
    // Pages that were full are partly computed again.
    let n_computed = world.engine.stats().n_tokens - n_before;
    assert!(n_computed < 60, "{n_computed}");
    // No token of a program was drafted, and no seed changes.
    assert_eq!(budget.left(), 12);
    let code = |followed: Result<(), Error>| followed.unwrap_err().code;
    let far = world.engine.follow(id, 1000, &[]);
    assert_eq!(code(far), ErrorCode::InvalidArgument);
    assert_eq!(
        code(world.engine.follow(id, 0, &[50])),
        ErrorCode::InvalidToken
    );
    let long = vec![1; 5000];
    assert_eq!(
        code(world.engine.follow(id, 0, &long)),
        ErrorCode::ContextFull
    );
}

// rows: RS-074
#[test]
fn drafting_changes_no_seed_of_a_program() {
    let draws = |drafts: bool| {
        let mut world = world();
        if drafts {
            let id = world.engine.new_draft_context(ProcessId(1)).unwrap();
            world.engine.follow(id, 0, &prompt(10, 1)).unwrap();
            world.draw(id);
        }
        let context = world.context(&prompt(10, 1));
        world.draw(context)
    };
    assert_eq!(draws(true), draws(false));
}

proptest! {
    /// Whatever is drafted, and however often it is given up, the tokens are those without drafts.
    // rows: RS-074
    #[test]
    fn drafts_of_another_model_change_no_token(
        temperature in prop_oneof![Just(0.0f32), Just(1.0)],
        is_run in any::<bool>(),
        ahead in any::<bool>(),
        kinds in prop::collection::vec((0usize..4, 0u32..50), 1..20),
        cancels in prop::collection::vec(any::<bool>(), 30),
    ) {
        let method = Method::Multinomial { temperature, draws: 1 };
        let made = GeneratorOptions { seed: Some(5), max_tokens: Some(24), ..options(method) };
        let mut plain = world();
        let (_, id) = generator(&mut plain, made.clone());
        let tokens = plain.run(id).unwrap().tokens;
        let mut world = World::with_process(pie_core::EngineConfig { run_ahead: ahead, ..config() }, 7);
        let (context, id) = generator(&mut world, GeneratorOptions { drafting: Drafting::Host, ..made });
        let mut mirror = Mirror::default();
        let (mut index, mut cancels) = (0, cancels.into_iter());
        let mut found = Vec::new();
        while found.len() < 24 {
            let submission = match is_run {
                true => Submission::Run(id),
                false => {
                    prop_assert!(world.engine.next_step(id).unwrap().is_some());
                    Submission::Step(id)
                }
            };
            let request = world.submit(submission).unwrap();
            if cancels.next() == Some(true) {
                world.plan();
                if let Some(wanted) = wanted(&mut world) {
                    mirror.follow(&wanted);
                }
                world.engine.cancel(request);
                world.pump();
                continue;
            }
            let answer = drive(&mut world, request, |wanted| {
                mirror.follow(wanted);
                let (kind, wrong) = kinds[index % kinds.len()];
                index += 1;
                let n_drawn = mirror.0.len() - 10;
                let right = tokens[n_drawn..].iter().copied();
                match kind {
                    0 => vec![],
                    1 => right.take(1).chain([wrong; 3]).collect(),
                    2 => vec![wrong; 100],
                    _ => right.chain([wrong; 9]).collect(),
                }
            });
            let answer = output(answer.unwrap());
            prop_assert!(answer.speculation.n_accepted <= answer.speculation.n_drafted);
            found.extend(answer.tokens);
            let all = [&prompt(10, 1)[..], &found].concat();
            prop_assert_eq!(world.engine.tail(context, 100).unwrap(), all);
        }
        prop_assert_eq!(found, tokens);
    }
}
