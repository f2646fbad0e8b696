//! The pure engine logic: pages, contexts, scheduling, batches, generation, sampling.
