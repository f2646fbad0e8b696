//! The keys and values of a run of tokens, page by page: a file beside that which holds the run.
//!
//! ```text
//! 8 bytes      "pie-page"
//! 4, 4         the version of the format; the number of pages
//! 4, 4         tokens of a page; bytes of the name of what made them
//! 8            bytes of a page
//! 32           the key of the run
//! 4 x pages    the CRC-32 of each page
//!              the name of what made them
//! 4            the CRC-32 of all that stands before
//!              the pages, one behind the other
//! ```
//!
//! Numbers are little-endian. A file is a shortcut and no more: one of another maker, of pages of another size, or with
//! a damaged header is none, and a damaged page is not used. What it would have said is computed again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use pie_core::Capabilities;

use super::content::RUN_TOKENS;
use super::format::{DIGEST_BYTES, Digest};

const MAGIC: [u8; 8] = *b"pie-page";
const VERSION: u32 = 1;
/// What stands before the sums.
const FIXED_BYTES: usize = MAGIC.len() + 4 * 4 + 8 + DIGEST_BYTES;
const SUM_BYTES: usize = 4;

/// A run of tokens of a snapshot: the file that holds it, and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptRun {
    /// The number of the file.
    pub(crate) file: u64,
    pub(crate) key: Digest,
}

/// What the pages of a driver are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageForm {
    /// This engine and its driver: the bits of a page depend on both.
    made_by: String,
    page_size: u32,
    pub(crate) page_bytes: usize,
}

impl PageForm {
    /// That of the pages of a driver; none where it gives none away, or a run is no whole number of them.
    pub(crate) fn of(driver: &Capabilities) -> Option<Self> {
        let page_bytes = usize::try_from(driver.page_bytes).ok().filter(|&n| n > 0)?;
        let page_size = driver.page_size;
        let divides = RUN_TOKENS.is_multiple_of(usize::try_from(page_size).ok()?);
        divides.then(|| Self {
            made_by: format!("{} {}", env!("CARGO_PKG_VERSION"), driver.pages_made_by),
            page_size,
            page_bytes,
        })
    }

    /// Tokens of a page.
    pub(crate) const fn page_size(&self) -> u32 {
        self.page_size
    }

    /// Pages of a run.
    pub(crate) const fn n_pages(&self) -> usize {
        RUN_TOKENS / self.page_size as usize
    }

    /// Bytes of a file.
    pub(super) const fn file_bytes(&self) -> u64 {
        (self.header_bytes() + self.n_pages() * self.page_bytes) as u64
    }

    const fn header_bytes(&self) -> usize {
        FIXED_BYTES + self.n_pages() * SUM_BYTES + self.made_by.len() + SUM_BYTES
    }

    /// Where a page lies.
    const fn offset(&self, place: usize) -> u64 {
        (self.header_bytes() + place * self.page_bytes) as u64
    }

    fn header(&self, key: &Digest, sums: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.header_bytes());
        bytes.extend(MAGIC);
        let n_name_bytes = self.made_by.len() as u32;
        for number in [VERSION, self.n_pages() as u32, self.page_size, n_name_bytes] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend((self.page_bytes as u64).to_le_bytes());
        bytes.extend(key);
        for sum in sums {
            bytes.extend(sum.to_le_bytes());
        }
        bytes.extend(self.made_by.as_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }
}

/// A file of pages that is read.
#[derive(Debug)]
pub(crate) struct PageFile {
    file: File,
    form: PageForm,
    sums: Vec<u32>,
}

impl PageFile {
    /// Of a file with the pages of a run, in that form; none where it has others, or its header is damaged.
    pub(super) fn open(file: File, form: &PageForm, key: &Digest) -> io::Result<Option<Self>> {
        if file.metadata()?.len() != form.file_bytes() {
            return Ok(None);
        }
        let mut header = vec![0; form.header_bytes()];
        file.read_exact_at(&mut header, 0)?;
        let sums = &header[FIXED_BYTES..FIXED_BYTES + form.n_pages() * SUM_BYTES];
        let (sums, _) = sums.as_chunks::<SUM_BYTES>();
        let sums: Vec<u32> = sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect();
        // Whatever else stands there is none of this form.
        let is_ours = header == form.header(key, &sums);
        Ok(is_ours.then(|| Self {
            file,
            form: form.clone(),
            sums,
        }))
    }

    /// Reads a page. False: it is damaged.
    pub(crate) fn read(&self, place: usize, page: &mut [u8]) -> io::Result<bool> {
        self.file.read_exact_at(page, self.form.offset(place))?;
        Ok(self.sums.get(place) == Some(&crc32fast::hash(page)))
    }
}

/// A file of pages that is written.
#[derive(Debug)]
pub(crate) struct PageWriter<'a> {
    file: &'a File,
    form: &'a PageForm,
    sums: Vec<u32>,
}

impl<'a> PageWriter<'a> {
    /// Into an empty file.
    pub(super) const fn new(file: &'a File, form: &'a PageForm) -> Self {
        Self {
            file,
            form,
            sums: Vec::new(),
        }
    }

    /// Writes the next page.
    pub(crate) fn push(&mut self, page: &[u8]) -> io::Result<()> {
        let offset = self.form.offset(self.sums.len());
        self.file.write_all_at(page, offset)?;
        self.sums.push(crc32fast::hash(page));
        Ok(())
    }

    /// All pages are written: the disk has them when this returns. False: they are too few.
    pub(super) fn end(self, key: &Digest) -> io::Result<bool> {
        if self.sums.len() != self.form.n_pages() {
            return Ok(false);
        }
        let header = self.form.header(key, &self.sums);
        self.file.write_all_at(&header, 0)?;
        self.file.sync_all()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> PageForm {
        let driver = Capabilities {
            page_size: 256,
            page_bytes: 40,
            pages_made_by: "test-1".to_owned(),
            ..Capabilities::default()
        };
        PageForm::of(&driver).unwrap()
    }

    fn written(form: &PageForm, key: &Digest) -> File {
        let file = tempfile::tempfile().unwrap();
        let mut writer = PageWriter::new(&file, form);
        for place in 0..4_u8 {
            writer.push(&[place; 40]).unwrap();
        }
        assert!(writer.end(key).unwrap());
        file
    }

    #[test]
    fn pages_are_read_as_they_were_written() {
        let form = form();
        let file = written(&form, &[7; 32]);
        assert_eq!(file.metadata().unwrap().len(), form.file_bytes());
        let file = PageFile::open(file, &form, &[7; 32]).unwrap().unwrap();
        let mut page = [9_u8; 40];
        for place in 0..4_u8 {
            assert!(file.read(usize::from(place), &mut page).unwrap());
            assert_eq!(page, [place; 40]);
        }
        assert!(file.read(4, &mut page).is_err());
    }

    #[test]
    fn a_flipped_bit_spoils_its_page_and_one_of_the_header_the_file() {
        let form = form();
        for at in 0..form.file_bytes() {
            let file = written(&form, &[7; 32]);
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 1], at).unwrap();
            let opened = PageFile::open(file, &form, &[7; 32]).unwrap();
            let spoilt = (0..4).filter(|&place| match &opened {
                Some(file) => !file.read(place, &mut [0; 40]).unwrap(),
                None => true,
            });
            let n_spoilt = if at < form.offset(0) { 4 } else { 1 };
            assert_eq!(spoilt.count(), n_spoilt, "byte {at}");
        }
    }

    #[test]
    fn pages_of_another_maker_run_or_size_are_none() {
        let form = form();
        let open = |form: &PageForm, key| {
            let file = written(&self::form(), &[7; 32]);
            PageFile::open(file, form, &key).unwrap()
        };
        assert!(open(&form, [7; 32]).is_some());
        assert!(open(&form, [8; 32]).is_none());
        let others = [
            PageForm {
                made_by: "test-2".to_owned(),
                ..form.clone()
            },
            PageForm {
                page_bytes: 41,
                ..form.clone()
            },
            PageForm {
                page_size: 128,
                page_bytes: 20,
                ..form.clone()
            },
        ];
        for other in others {
            assert!(open(&other, [7; 32]).is_none(), "{other:?}");
        }
        for at in 0..4 {
            let file = tempfile::tempfile().unwrap();
            let mut writer = PageWriter::new(&file, &form);
            for _ in 0..at {
                writer.push(&[0; 40]).unwrap();
            }
            assert!(!writer.end(&[7; 32]).unwrap(), "{at} pages");
        }
    }

    #[test]
    fn a_driver_that_gives_no_pages_away_has_no_form() {
        let driver = |page_size, page_bytes| Capabilities {
            page_size,
            page_bytes,
            ..Capabilities::default()
        };
        assert!(PageForm::of(&driver(16, 64)).is_some());
        assert!(PageForm::of(&driver(16, 0)).is_none());
        assert!(PageForm::of(&driver(24, 64)).is_none());
    }
}
