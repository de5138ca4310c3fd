//! The fields of a tracepoint's records, from the kernel's `format` file.
//! Pure: its text goes in.

use std::ops::Range;

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: String,
    offset: usize,
    size: usize,
}

/// The layout of one kind of record.
#[derive(Clone, Debug, Default)]
pub struct Format {
    /// What its records have as `common_type`.
    pub id: u64,
    fields: Vec<Field>,
    /// The letter for each bit of a flag field, as in `{ 0x0001, "S" }`.
    letters: Vec<(u64, char)>,
}

impl Format {
    pub fn parse(text: &str) -> Format {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok()).unwrap_or(0);
        let printed = text.lines().find(|line| line.starts_with("print fmt:")).unwrap_or_default();
        Format { id, fields: text.lines().filter_map(field).collect(), letters: letters(printed) }
    }

    /// The bytes of a field. The error says what this kernel does not have.
    pub fn place(&self, name: &str) -> Result<Range<usize>, String> {
        let field = self.fields.iter().find(|field| field.name == name);
        let field = field.ok_or_else(|| format!("this kernel's records have no field {name}"))?;
        Ok(field.offset..field.offset.saturating_add(field.size))
    }

    /// The letter of the lowest bit of `flags` that has one.
    pub fn letter(&self, flags: u64) -> Option<char> {
        self.letters.iter().find(|(bit, _)| flags & bit != 0).map(|(_, letter)| *letter)
    }

    /// The bits that have a letter.
    pub fn known_bits(&self) -> u64 {
        self.letters.iter().fold(0, |all, (bit, _)| all | bit)
    }
}

/// `field:char prev_comm[16]; offset:8; size:16; signed:0;`
fn field(line: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declared = parts.next()?.strip_prefix("field:")?;
    let name = declared.rsplit(' ').next()?.split('[').next()?.to_owned();
    let mut number = |word: &str| parts.next()?.strip_prefix(word)?.parse().ok();
    Some(Field { name, offset: number("offset:")?, size: number("size:")? })
}

/// All pairs such as `{ 0x00000001, "S" }`.
fn letters(text: &str) -> Vec<(u64, char)> {
    let pair = |inside: &str| {
        let (bit, letter) = inside.split_once('}')?.0.split_once(',')?;
        let bit = u64::from_str_radix(bit.trim().strip_prefix("0x")?, 16).ok()?;
        let mut letter = letter.trim().strip_prefix('"')?.strip_suffix('"')?.chars();
        letter.next().filter(|_| letter.next().is_none()).map(|letter| (bit, letter))
    };
    text.split('{').skip(1).filter_map(pair).collect()
}

/// A number of 1, 2, 4 or 8 bytes in native order; `None` past the end.
pub fn number(bytes: &[u8], place: &Range<usize>) -> Option<u64> {
    let bytes = bytes.get(place.clone())?;
    match bytes.len() {
        1 => Some(bytes[0].into()),
        2 => bytes.try_into().ok().map(|bytes| u16::from_ne_bytes(bytes).into()),
        4 => bytes.try_into().ok().map(|bytes| u32::from_ne_bytes(bytes).into()),
        8 => bytes.try_into().ok().map(u64::from_ne_bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 314\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\n\
        print fmt: \"%s\", (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, \"|\", \
        { 0x00000001, \"S\" }, { 0x00000002, \"D\" }, { 0x00000080, \"I\" }) : \"R\"\n";

    #[test]
    fn fields_are_where_the_kernel_says() {
        let format = Format::parse(SWITCH);
        assert_eq!(format.id, 314);
        assert_eq!(format.place("prev_comm"), Ok(8..24));
        assert_eq!(format.place("prev_state"), Ok(32..40));
        assert!(format.place("next_pid").unwrap_err().contains("no field next_pid"));
    }

    #[test]
    fn states_have_the_letters_of_the_format() {
        let format = Format::parse(SWITCH);
        assert_eq!(
            [1, 2, 0x80, 0x100, 0].map(|state| format.letter(state)),
            [Some('S'), Some('D'), Some('I'), None, None]
        );
        assert_eq!(format.known_bits(), 0x83);
    }

    #[test]
    fn numbers_are_read_within_the_record_only() {
        let bytes = [1, 0, 0, 0, 2, 0, 0, 0];
        assert_eq!(number(&bytes, &(0..4)), Some(u32::from_ne_bytes([1, 0, 0, 0]).into()));
        assert_eq!(number(&bytes, &(6..10)), None);
        assert_eq!(number(&bytes, &(0..3)), None);
    }
}
