//! Keeps the likeliest few continuations at each step. Input: `{"prompt", "beams", "max_tokens"}`.

use inferlet::prelude::*;
use inferlet::sample::Distribution;
use inferlet::task;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(default)]
struct Input {
    prompt: String,
    beams: usize,
    max_tokens: usize,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            prompt: "Name an animal.".to_owned(),
            beams: 3,
            max_tokens: 16,
        }
    }
}

struct Beam {
    score: f64,
    ctx: Context,
    tokens: Vec<u32>,
}

/// A token that could follow a beam.
#[derive(Clone, Copy)]
struct Choice {
    score: f64,
    beam: usize,
    token: u32,
}

#[inferlet::main]
async fn main(input: Input) -> Result<Vec<String>> {
    let model = Model::load("default")?;
    let ends = chat::stop_tokens(&model)?;
    let mut ctx = Context::new(&model)?;
    ctx.user(&input.prompt).cue();
    let mut beams = vec![Beam {
        score: 1.0,
        ctx,
        tokens: Vec::new(),
    }];
    let mut done: Vec<(f64, Vec<u32>)> = Vec::new();
    for _ in 0..input.max_tokens {
        if beams.is_empty() || done.len() >= input.beams {
            break;
        }
        // The passes of all beams share a batch.
        let passes = (0..)
            .zip(&beams)
            .map(|(n, beam)| choices(n, beam, input.beams));
        let found: Result<Vec<_>> = task::join_all(passes).await.into_iter().collect();
        let mut best = found?.concat();
        best.sort_by(|one, other| other.score.total_cmp(&one.score));
        best.truncate(input.beams);
        let mut next = Vec::new();
        for Choice { score, beam, token } in best {
            let tokens = [&beams[beam].tokens[..], &[token]].concat();
            if ends.contains(&token) {
                done.push((score, tokens));
                continue;
            }
            // A fork shares the pages of the beam that it continues.
            let mut ctx = beams[beam].ctx.fork()?;
            ctx.append(&[token]);
            next.push(Beam { score, ctx, tokens });
        }
        beams = next;
    }
    if done.is_empty() {
        done = beams
            .into_iter()
            .map(|beam| (beam.score, beam.tokens))
            .collect();
    }
    done.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let text = |(_, tokens): &(f64, Vec<u32>)| {
        let said: Vec<u32> = tokens
            .iter()
            .copied()
            .filter(|token| !ends.contains(token))
            .collect();
        model.tokenizer().decode(&said)
    };
    done.iter().take(input.beams).map(text).collect()
}

/// The likeliest tokens behind a beam. The last token of the beam is still in its buffer.
async fn choices(n: usize, beam: &Beam, k: usize) -> Result<Vec<Choice>> {
    let mut fwd = beam.ctx.forward();
    let likeliest = Distribution {
        temperature: 1.0,
        k: k as u32,
    };
    let probe = fwd.probe(beam.ctx.buffer().len() as u32 - 1, likeliest);
    let out = fwd.execute().await?;
    let (ids, shares) = out
        .distribution(probe)
        .ok_or("a probe has a distribution")?;
    let choice = |(token, share): (&u32, &f32)| Choice {
        score: beam.score * f64::from(*share),
        beam: n,
        token: *token,
    };
    Ok(ids.iter().zip(shares).map(choice).collect())
}
