//! The rows of logits that a pass wants, and what came of them.

use std::ops::Range;
use std::sync::Arc;

use super::jobs::RowResult;
use super::layout::Keep;
use crate::sampling::{Key, Params, Probe, Reading};

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Read {
    /// The slot of the token behind which it is read.
    pub(crate) slot: u32,
    /// How tokens are drawn from it, and by which key.
    pub(crate) params: Params,
    pub(crate) key: Key,
    /// 0 where nothing is drawn.
    pub(crate) n_draws: u32,
    /// The tokens that may be drawn, as run lengths over the vocabulary; none: any, or where the mask comes late, it
    /// has not come.
    pub(crate) mask: Option<Arc<[u32]>>,
    /// The mask may come after the forward has been launched.
    pub(crate) is_late: bool,
    /// What is read of it besides.
    pub(crate) probes: Option<Arc<[Probe]>>,
}

impl Read {
    /// The row behind the token that this one draws, which is drawn alike.
    pub(crate) fn following(&self) -> Self {
        let slot = self.slot + 1;
        Self {
            slot,
            key: Key {
                position: slot + 1,
                ..self.key
            },
            ..self.clone()
        }
    }

    /// Whether it is planned without its mask.
    pub(crate) const fn awaits_mask(&self) -> bool {
        self.is_late && self.mask.is_none()
    }

    /// What a driver that draws by itself answers besides.
    pub(crate) fn kept(&self) -> Keep {
        let probes = self.probes.as_deref().unwrap_or_default();
        if self.awaits_mask() || probes.iter().any(Probe::reads_logits) {
            Keep::Logits
        } else if probes.is_empty() {
            Keep::Draws
        } else {
            Keep::Embedding
        }
    }

    /// What it counts for against the rows of a batch: each distribution takes as long as a row that is drawn from.
    pub(crate) fn weight(&self) -> u32 {
        let probes = self.probes.as_deref().unwrap_or_default().iter();
        let distributions = probes.filter(|probe| matches!(probe, Probe::Distribution { .. }));
        (distributions.count() as u32).max(1)
    }

    /// Whether the hidden state of its token is read.
    pub(crate) fn embeds(&self) -> bool {
        let probes = self.probes.as_deref().unwrap_or_default();
        !probes.iter().all(Probe::reads_logits)
    }

    /// Whether it is more than one row: a driver answers the hidden state of a token and its logits in a row each.
    fn is_twofold(&self) -> bool {
        self.embeds() && (self.n_draws > 0 || self.kept() == Keep::Logits)
    }
}

/// What came of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowOutput {
    /// One token for each draw.
    pub tokens: Vec<u32>,
    /// One for each probe.
    pub readings: Vec<Reading>,
}

/// All rows of a pass. A batch answers those of the tokens that it computed, and since tokens are computed in their
/// order, rows are answered in theirs; what is computed again later is not read again.
#[derive(Debug, Default)]
pub(crate) enum Reads {
    #[default]
    None,
    /// The one behind the last token of a generation, from which one token is drawn. It lies in place: every sequence
    /// of every step has one.
    One {
        read: Read,
        drawn: Option<u32>,
    },
    Many(Box<Many>),
}

/// Any number of rows. What a program asks for of one token is one row, unless tokens are drawn from it in several
/// ways.
#[derive(Debug, Default)]
pub(crate) struct Many {
    /// By the slots of their tokens.
    reads: Vec<Read>,
    /// From which of these each of the program's comes; empty where they are the same, in the same order.
    sources: Vec<RowSource>,
    /// The program's, where that is one and these are two.
    whole: Option<Box<Read>>,
    /// The tokens that were drawn from the first of them, one row after the other.
    drawn: Vec<u32>,
    /// What came of the first of them: where its tokens end in `drawn`, and what was read.
    answers: Vec<(usize, Vec<Reading>)>,
    /// Those that were answered without their mask.
    kept: Vec<KeptRow>,
    /// Rows whose mask comes late and that were not drawn from yet.
    n_late: usize,
}

/// Where what a program asked for of one row comes from, among the rows that batches answer.
#[derive(Clone, Debug, Default)]
struct RowSource {
    /// Where the row stands whose tokens are its own; none where it draws nothing.
    drawn: Option<usize>,
    /// Of each of its probes where the row stands that it reads, and which of the readings there is its own.
    readings: Vec<(usize, usize)>,
}

/// A row that is kept until its mask comes.
#[derive(Debug)]
struct KeptRow {
    /// Which of the rows it is.
    place: usize,
    logits: Arc<[f32]>,
    /// Its mask came, and somebody draws.
    is_drawn: bool,
}

/// Why a mask is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MaskFault {
    /// There is no such row.
    NoRow,
    /// Its mask does not come late.
    NotLate,
    /// It has its mask.
    Given,
}

impl Many {
    /// A batch answered the next row.
    fn answer(&mut self, row: &RowResult<'_>) {
        let place = self.answers.len();
        let is_late = self.reads.get(place).is_some_and(|read| read.is_late);
        if is_late && row.tokens.is_empty() {
            debug_assert!(row.kept.is_some(), "a late row is drawn from or kept");
            self.kept.push(KeptRow {
                place,
                logits: row.kept.cloned().unwrap_or_default(),
                is_drawn: false,
            });
        }
        self.n_late -= usize::from(is_late && !row.tokens.is_empty());
        self.drawn.extend_from_slice(row.tokens);
        self.answers.push((self.drawn.len(), row.readings.to_vec()));
    }
}

impl Reads {
    /// Rows in the order of the program.
    pub(crate) fn new(asked: Vec<Read>) -> Self {
        let n_late = asked.iter().filter(|read| read.is_late).count();
        let whole = match &asked[..] {
            [read] if read.is_twofold() => Some(Box::new(read.clone())),
            _ => None,
        };
        let ascend = asked.windows(2).all(|pair| pair[0].slot < pair[1].slot);
        let (reads, sources) = if ascend && !asked.iter().any(Read::is_twofold) {
            (asked, Vec::new())
        } else {
            merged(&asked)
        };
        Self::Many(Box::new(Many {
            reads,
            sources,
            whole,
            n_late,
            ..Many::default()
        }))
    }

    /// A row from which one token is drawn.
    pub(crate) fn one(read: Read) -> Self {
        if read.is_late || read.probes.is_some() {
            Self::new(vec![read])
        } else {
            Self::One { read, drawn: None }
        }
    }

    /// The row behind the token at `slot`, drawn as the one before, in its place. False: there was none, or there were
    /// several, or more than one token is wanted of it.
    pub(crate) fn follow(&mut self, slot: u32) -> bool {
        let Self::One { read, drawn } = self else {
            return false;
        };
        (read.slot, read.key.position, *drawn) = (slot, slot + 1, None);
        true
    }

    /// The row, where it is one from which one token is drawn, and that was not.
    pub(crate) const fn only(&self) -> Option<&Read> {
        match self {
            Self::One { read, drawn: None } => Some(read),
            _ => None,
        }
    }

    fn left(&self) -> &[Read] {
        match self {
            Self::One { read, drawn: None } => std::slice::from_ref(read),
            Self::None | Self::One { .. } => &[],
            Self::Many(many) => &many.reads[many.answers.len()..],
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left().is_empty()
    }

    /// Rows, answered or not.
    pub(crate) fn n_rows(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One { .. } => 1,
            Self::Many(many) => many.reads.len(),
        }
    }

    /// The last row, answered or not.
    pub(crate) fn last(&self) -> Option<&Read> {
        match self {
            Self::None => None,
            Self::One { read, .. } => Some(read),
            Self::Many(many) => many.whole.as_deref().or(many.reads.last()),
        }
    }

    /// The slot of the first token of which a row is not answered.
    pub(crate) fn next_slot(&self) -> Option<u32> {
        self.left().first().map(|read| read.slot)
    }

    /// Rows that batches answered.
    pub(crate) fn n_answered(&self) -> usize {
        match self {
            Self::Many(many) => many.answers.len(),
            Self::None | Self::One { .. } => 0,
        }
    }

    /// Rows that a batch has to answer which computes these slots.
    pub(crate) fn within(&self, slots: Range<u32>) -> &[Read] {
        if let Self::One { read, drawn } = self {
            let is_left = drawn.is_none() && slots.contains(&read.slot);
            return if is_left {
                std::slice::from_ref(read)
            } else {
                &[]
            };
        }
        let left = self.left();
        let first = left.partition_point(|read| read.slot < slots.start);
        let end = left.partition_point(|read| read.slot < slots.end);
        &left[first..end]
    }

    /// A batch answered the next rows.
    pub(crate) fn answer<'a>(&mut self, mut rows: impl Iterator<Item = RowResult<'a>>) {
        match self {
            Self::None | Self::One { drawn: Some(_), .. } => {}
            Self::One { drawn, .. } => {
                *drawn = rows.next().and_then(|row| row.tokens.first().copied());
            }
            Self::Many(many) => {
                let n_left = many.reads.len() - many.answers.len();
                for row in rows.take(n_left) {
                    many.answer(&row);
                }
            }
        }
    }

    /// Rows whose mask comes late and that were not drawn from yet.
    pub(crate) const fn n_late(&self) -> usize {
        match self {
            Self::None | Self::One { .. } => 0,
            Self::Many(many) => many.n_late,
        }
    }

    /// The mask of a late row came. `row` is the program's.
    pub(crate) fn give_mask(&mut self, row: usize, mask: Arc<[u32]>) -> Result<(), MaskFault> {
        let Self::Many(many) = self else {
            return Err(match self {
                Self::One { .. } if row == 0 => MaskFault::NotLate,
                _ => MaskFault::NoRow,
            });
        };
        let place = match many.sources.get(row) {
            Some(source) => source.drawn.ok_or(MaskFault::NotLate)?,
            None if many.sources.is_empty() => row,
            None => return Err(MaskFault::NoRow),
        };
        let read = many.reads.get_mut(place).ok_or(MaskFault::NoRow)?;
        if !read.is_late {
            return Err(MaskFault::NotLate);
        }
        if read.mask.is_some() {
            return Err(MaskFault::Given);
        }
        read.mask = Some(mask);
        Ok(())
    }

    /// Whether the mask of a row has not come.
    pub(crate) fn lacks_mask(&self) -> bool {
        matches!(self, Self::Many(many) if many.reads.iter().any(Read::awaits_mask))
    }

    /// The mask of a late row by its place; none where it has not come.
    pub(crate) fn mask_at(&self, place: usize) -> Option<Arc<[u32]>> {
        let Self::Many(many) = self else { return None };
        many.reads.get(place)?.mask.clone()
    }

    /// The next row that was kept, whose mask has come and from which nobody draws: where it stands, the row, and how
    /// it is drawn.
    pub(crate) fn next_draw(&mut self) -> Option<(usize, Arc<[f32]>, &Read)> {
        let Self::Many(many) = self else { return None };
        let reads = &many.reads;
        let has_mask = |place: usize| reads.get(place).is_some_and(|read| read.mask.is_some());
        let mut kept = many.kept.iter_mut();
        let kept = kept.find(|kept| !kept.is_drawn && has_mask(kept.place))?;
        kept.is_drawn = true;
        Some((kept.place, kept.logits.clone(), reads.get(kept.place)?))
    }

    /// Tokens were drawn from a row that was kept. False: it is not kept.
    pub(crate) fn answer_late(&mut self, place: usize, tokens: &[u32]) -> bool {
        let Self::Many(many) = self else { return false };
        let Some(index) = many.kept.iter().position(|kept| kept.place == place) else {
            return false;
        };
        many.kept.swap_remove(index);
        many.n_late -= 1;
        // Tokens stand in the order of their rows.
        let at = many.answers.get(place).map_or(0, |(end, _)| *end);
        many.drawn.splice(at..at, tokens.iter().copied());
        for (end, _) in &mut many.answers[place..] {
            *end += tokens.len();
        }
        true
    }

    /// The tokens that were drawn, of one row after the other.
    pub(crate) fn drawn(&self) -> &[u32] {
        match self {
            Self::None => &[],
            Self::One { drawn, .. } => drawn.as_slice(),
            Self::Many(many) => &many.drawn,
        }
    }

    /// What came of all rows, in the order of the program.
    pub(crate) fn into_outputs(self) -> Vec<RowOutput> {
        let many = match self {
            Self::None => return Vec::new(),
            Self::One { drawn, .. } => {
                return vec![RowOutput {
                    tokens: drawn.into_iter().collect(),
                    readings: Vec::new(),
                }];
            }
            Self::Many(many) => *many,
        };
        let mut start = 0;
        let answers = many.answers.into_iter().map(|(end, readings)| {
            let tokens = many.drawn[start..end].to_vec();
            start = end;
            RowOutput { tokens, readings }
        });
        let mut answers: Vec<RowOutput> = answers.collect();
        answers.resize(many.reads.len(), RowOutput::default());
        if many.sources.is_empty() {
            return answers;
        }
        let sources = many.sources.into_iter().map(|source| {
            let drawn = source.drawn.and_then(|place| answers.get_mut(place));
            let tokens = drawn.map(|answer| std::mem::take(&mut answer.tokens));
            let reading = |&(place, index): &(usize, usize)| {
                let answer = answers.get(place)?;
                answer.readings.get(index).cloned()
            };
            RowOutput {
                tokens: tokens.unwrap_or_default(),
                readings: source.readings.iter().filter_map(reading).collect(),
            }
        });
        sources.collect()
    }
}

/// Rows by the slots of their tokens: of each token one that is its hidden state, where that is read, then one for each
/// way of drawing, the first of them with all other probes. And what each that was asked for is of them.
fn merged(asked: &[Read]) -> (Vec<Read>, Vec<RowSource>) {
    let mut order: Vec<usize> = (0..asked.len()).collect();
    order.sort_by_key(|&index| asked[index].slot);
    let (mut reads, mut sources) = (Vec::new(), vec![RowSource::default(); asked.len()]);
    for of_token in order.chunk_by(|&a, &b| asked[a].slot == asked[b].slot) {
        merge(asked, of_token, &mut reads, &mut sources);
    }
    (reads, sources)
}

/// Adds the rows of one token, of which these were asked for.
fn merge(asked: &[Read], of_token: &[usize], reads: &mut Vec<Read>, sources: &mut [RowSource]) {
    let state = reads.len();
    let undrawn = |probes: Vec<Probe>| Read {
        params: Params::ARGMAX,
        n_draws: 0,
        mask: None,
        is_late: false,
        probes: (!probes.is_empty()).then(|| Arc::from(probes)),
        ..asked[of_token[0]].clone()
    };
    if of_token.iter().any(|&index| asked[index].embeds()) {
        reads.push(undrawn(vec![Probe::Embedding]));
    }
    let first = reads.len();
    let mut probes = Vec::new();
    for &index in of_token {
        let (read, source) = (&asked[index], &mut sources[index]);
        if read.n_draws > 0 {
            source.drawn = Some(reads.len());
            reads.push(Read {
                probes: None,
                ..read.clone()
            });
        }
        for probe in read.probes.as_deref().unwrap_or_default() {
            source.readings.push(match probe {
                Probe::Embedding => (state, 0),
                _ => (first, probes.len()),
            });
            probes.extend(Some(probe).filter(|probe| probe.reads_logits()).cloned());
        }
    }
    match reads.get_mut(first) {
        Some(read) if !probes.is_empty() => read.probes = Some(Arc::from(probes)),
        None if !probes.is_empty() || first == state => reads.push(undrawn(probes)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
