//! Items that QEMU was given with `-fw_cfg name=…,file=…` (docs/specs/fw_cfg.rst).

use crate::ports::Ports;

const DIRECTORY: u16 = 0x19;
const ENTRY_BYTES: usize = 64;
const NAME_BYTES: usize = 56;

/// The bytes of the item `name`. The error says what is missing or too long.
pub fn item(ports: &Ports, name: &str, limit_bytes: usize) -> Result<Vec<u8>, String> {
    ports.firmware_select(DIRECTORY);
    let mut count = [0; 4];
    ports.firmware_read(&mut count);
    for _ in 0..u32::from_be_bytes(count) {
        let mut raw = [0; ENTRY_BYTES];
        ports.firmware_read(&mut raw);
        let entry = Entry::parse(&raw);
        if entry.name != name.as_bytes() {
            continue;
        }
        if entry.size > limit_bytes {
            return Err(format!("{name} has {} bytes, more than {limit_bytes}", entry.size));
        }
        let mut bytes = vec![0; entry.size];
        ports.firmware_select(entry.key);
        ports.firmware_read(&mut bytes);
        return Ok(bytes);
    }
    Err(format!("the machine was started without {name}"))
}

/// One entry of the directory.
/// Big-endian size and key, two reserved bytes, a name padded with zeros.
struct Entry<'a> {
    size: usize,
    key: u16,
    name: &'a [u8],
}

impl Entry<'_> {
    fn parse(raw: &[u8; ENTRY_BYTES]) -> Entry<'_> {
        let name = &raw[ENTRY_BYTES - NAME_BYTES..];
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        Entry {
            size: u32::from_be_bytes([raw[0], raw[1], raw[2], raw[3]]) as usize,
            key: u16::from_be_bytes([raw[4], raw[5]]),
            name: &name[..length],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_big_endian_and_filled_up_with_zeros() {
        let mut raw = [0; ENTRY_BYTES];
        raw[..6].copy_from_slice(&[0, 0, 1, 2, 0, 0x2a]);
        raw[8..23].copy_from_slice(b"opt/ajuste/plan");
        let entry = Entry::parse(&raw);
        assert_eq!((entry.size, entry.key, entry.name), (258, 42, b"opt/ajuste/plan".as_slice()));
        raw[8..].fill(b'x');
        assert_eq!(Entry::parse(&raw).name.len(), NAME_BYTES);
    }
}
