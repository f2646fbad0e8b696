//! Tables and pool against an oracle that keeps the content of every table as plain lists.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Operation {
    /// Table `which` writes `n` tokens; the batch that does it fails or not.
    Write {
        which: usize,
        n: u32,
        fails: bool,
    },
    Fork {
        which: usize,
    },
    Truncate {
        which: usize,
        keep: u32,
    },
    Drop {
        which: usize,
    },
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        4 => (0usize..8, 1u32..12, prop::bool::weighted(0.2)).prop_map(|(which, n, fails)| Operation::Write { which, n, fails }),
        2 => (0usize..8).prop_map(|which| Operation::Fork { which }),
        1 => (0usize..8, 0u32..30).prop_map(|(which, keep)| Operation::Truncate { which, keep }),
        1 => (0usize..8).prop_map(|which| Operation::Drop { which }),
    ];
    prop::collection::vec(operation, 1..60)
}

/// What a driver would hold, and what each table should read back.
struct World {
    pool: PagePool,
    memory: Vec<Vec<u64>>,
    tables: Vec<(PageTable, Vec<u64>)>,
    page_size: u32,
    clock: u64,
}

impl World {
    fn write(&mut self, which: usize, n: u32, fails: bool) -> Result<(), TestCaseError> {
        let page_size = self.page_size;
        let (table, content) = &mut self.tables[which];
        let start = content.len() as u32;
        let n_free = self.pool.n_free();
        let before = table.pages().to_vec();
        let copy = match table.reserve(&mut self.pool, page_size, start, start + n) {
            Ok(copy) => copy,
            Err(shortage) => {
                prop_assert!(shortage.needed > n_free);
                prop_assert_eq!(table.pages(), &before[..]);
                prop_assert_eq!(self.pool.n_free(), n_free);
                return Ok(());
            }
        };
        let mut pages = table.pages().to_vec();
        if let Some(copy) = copy {
            self.memory[copy.dst.0 as usize] = self.memory[copy.src.0 as usize].clone();
            pages[copy.page_idx as usize] = copy.dst;
        }
        let mut values = Vec::new();
        for slot in start..start + n {
            let page = pages[(slot / page_size) as usize];
            prop_assert!(copy.is_some_and(|copy| copy.dst == page) || !self.pool.is_shared(page));
            self.clock += 1;
            values.push(self.clock);
            self.memory[page.0 as usize][(slot % page_size) as usize] = self.clock;
        }
        if fails {
            if let Some(copy) = copy {
                self.pool.release(copy.dst);
            }
            table.truncate(&mut self.pool, page_size, start);
        } else {
            if let Some(copy) = copy {
                table.adopt(&mut self.pool, copy);
            }
            content.extend(values);
        }
        Ok(())
    }

    fn verify(&self) -> Result<(), TestCaseError> {
        let mut references = vec![0u32; self.memory.len()];
        for (table, content) in &self.tables {
            prop_assert_eq!(
                table.pages().len() as u32,
                pages_for(content.len() as u32, self.page_size)
            );
            for (slot, value) in content.iter().enumerate() {
                let page = table.pages()[slot / self.page_size as usize];
                prop_assert_eq!(
                    self.memory[page.0 as usize][slot % self.page_size as usize],
                    *value
                );
            }
            for page in table.pages() {
                references[page.0 as usize] += 1;
            }
        }
        for (page, count) in references.iter().enumerate() {
            prop_assert_eq!(
                self.pool.references(crate::ids::PageId(page as u32)),
                *count
            );
        }
        let n_used = references.iter().filter(|&&count| count > 0).count();
        prop_assert_eq!(self.pool.n_used() as usize, n_used);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn tables_read_back_what_was_written(page_size in 1u32..5, n_pages in 1u32..24, operations in operations()) {
        let memory = vec![vec![0; page_size as usize]; n_pages as usize];
        let tables = vec![(PageTable::default(), Vec::new())];
        let mut world = World { pool: PagePool::new(n_pages), memory, tables, page_size, clock: 0 };
        for operation in operations {
            let n = world.tables.len();
            match operation {
                Operation::Write { which, n: n_tokens, fails } => world.write(which % n, n_tokens, fails)?,
                Operation::Fork { which } if n < 8 => {
                    let (table, content) = &world.tables[which % n];
                    let fork = table.fork(&mut world.pool, page_size, content.len() as u32);
                    let content = content.clone();
                    world.tables.push((fork, content));
                }
                Operation::Truncate { which, keep } => {
                    let (table, content) = &mut world.tables[which % n];
                    content.truncate(keep as usize);
                    table.truncate(&mut world.pool, page_size, content.len() as u32);
                }
                Operation::Drop { which } if n > 1 => {
                    let (mut table, _) = world.tables.remove(which % n);
                    table.truncate(&mut world.pool, page_size, 0);
                }
                Operation::Fork { .. } | Operation::Drop { .. } => {}
            }
            world.verify()?;
        }
    }
}
