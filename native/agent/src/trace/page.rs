//! The records in a page of the kernel's trace buffer (`trace_pipe_raw`).
//! Pure: the bytes go in.
//!
//! The format is that of `events/header_page` and `events/header_event`; what its kinds mean is in
//! `include/linux/ring_buffer.h` of the kernel and in libtraceevent's `kbuffer-parse.c`.

use std::ops::Range;

use super::format::{Format, number};

/// The bits of `commit` for the length of the records; higher bits report lost ones.
const COMMITTED: u64 = (1 << 27) - 1;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// The bits of an absolute time; the rest are those of the page's time.
const STAMP_BITS: u32 = 59;

/// Where things are in a page.
#[derive(Clone, Debug)]
pub struct Layout {
    timestamp: Range<usize>,
    commit: Range<usize>,
    data: Range<usize>,
}

impl Layout {
    /// By the text of `events/header_page`.
    pub fn parse(text: &str) -> Result<Layout, String> {
        let format = Format::parse(text);
        Ok(Layout {
            timestamp: format.place("timestamp")?,
            commit: format.place("commit")?,
            data: format.place("data")?,
        })
    }

    /// The length of a page in bytes.
    pub fn page_bytes(&self) -> usize {
        self.data.end
    }
}

/// Goes through a page, record by record.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    at_ns: u64,
    next: usize,
    end: usize,
}

impl Cursor {
    /// At the beginning of a page, which may be shorter than it should.
    pub fn new(page: &[u8], layout: &Layout) -> Cursor {
        let at_ns = number(page, &layout.timestamp).unwrap_or(0);
        let committed = (number(page, &layout.commit).unwrap_or(0) & COMMITTED) as usize;
        let next = layout.data.start;
        Cursor { at_ns, next, end: page.len().min(next.saturating_add(committed)) }
    }

    /// The time and bytes of the next record.
    /// `None` at the end, and where the page is invalid.
    pub fn next(&mut self, page: &[u8]) -> Option<(u64, Range<usize>)> {
        while self.next + 4 <= self.end {
            let word = |place: usize| number(page, &(place..place + 4)).map(|word| word as u32);
            let header = word(self.next)?;
            let (kind, delta) = (header & 31, u64::from(header >> 5));
            let array = self.next + 4;
            match kind {
                PADDING if delta == 0 => return None,
                PADDING => {
                    self.at_ns = self.at_ns.wrapping_add(delta);
                    self.next = array.checked_add(word(array)? as usize)?;
                }
                TIME_EXTEND => {
                    self.at_ns = self.at_ns.wrapping_add((u64::from(word(array)?) << DELTA_BITS) + delta);
                    self.next = array + 4;
                }
                TIME_STAMP => {
                    let above = self.at_ns & !((1 << STAMP_BITS) - 1);
                    self.at_ns = ((u64::from(word(array)?) << DELTA_BITS) + delta) | above;
                    self.next = array + 4;
                }
                _ => {
                    let record = match kind {
                        0 => array + 4..array.checked_add(word(array)? as usize)?,
                        words => array..array + 4 * words as usize,
                    };
                    if record.start > record.end || record.end > self.end {
                        return None;
                    }
                    self.at_ns = self.at_ns.wrapping_add(delta);
                    self.next = record.end.next_multiple_of(4);
                    return Some((self.at_ns, record));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn page(at_ns: u64, flags: u64, words: &[u32]) -> Vec<u8> {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut page = at_ns.to_ne_bytes().to_vec();
        page.extend((data.len() as u64 | flags).to_ne_bytes());
        page.extend(data);
        page.resize(4096, 0xff);
        page
    }

    fn records(page: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let layout = Layout::parse(HEADER).unwrap();
        assert_eq!(layout.page_bytes(), 4096);
        let mut cursor = Cursor::new(page, &layout);
        let mut found = Vec::new();
        while let Some((at_ns, place)) = cursor.next(page) {
            found.push((at_ns, page[place].to_vec()));
        }
        found
    }

    fn header(kind: u32, delta: u32) -> u32 {
        kind | delta << 5
    }

    #[test]
    fn records_follow_each_other_with_their_times() {
        let words = [header(1, 7), 0x0403_0201, header(0, 5), 12, 1, 2, header(TIME_EXTEND, 3), 1, header(1, 1), 9];
        let found = records(&page(1000, 0, &words));
        assert_eq!(found.iter().map(|(at_ns, _)| *at_ns).collect::<Vec<_>>(), [1007, 1012, 1012 + (1 << 27) + 3 + 1]);
        assert_eq!(found[0].1, 0x0403_0201_u32.to_ne_bytes());
        assert_eq!(found[1].1.len(), 8);
        assert_eq!(found[2].1, 9_u32.to_ne_bytes());
    }

    #[test]
    fn an_absolute_time_keeps_the_highest_bits_of_the_page() {
        let base = (1 << 60) + 5;
        let found = records(&page(base, 1 << 31, &[header(TIME_STAMP, 17), 2, header(1, 0), 1]));
        assert_eq!(found[0].0, (1 << 60) + (2 << 27) + 17);
    }

    #[test]
    fn what_was_discarded_is_stepped_over() {
        let words = [header(PADDING, 4), 8, 0xdead, header(1, 1), 6, header(PADDING, 0), 0];
        assert_eq!(records(&page(0, 0, &words)), [(5, 6_u32.to_ne_bytes().to_vec())]);
    }

    #[test]
    fn nonsense_ends_a_page_and_nothing_else() {
        for words in
            [&[header(28, 1), 1][..], &[header(0, 1), 2], &[header(0, 1), u32::MAX], &[header(PADDING, 1), u32::MAX]]
        {
            assert!(records(&page(0, 0, words)).is_empty());
        }
        let layout = Layout::parse(HEADER).unwrap();
        assert!(Cursor::new(&[1, 2, 3], &layout).next(&[1, 2, 3]).is_none());
    }
}
