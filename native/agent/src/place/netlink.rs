//! Requests to netlink(7), and the attributes in requests and answers.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::errno;

const HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// The kernel never writes more than 32 KiB into one answer.
const ANSWER_BYTES: usize = 65536;
/// linux/netlink.h: acknowledgements have attributes, and the one with the text.
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;

/// A conversation with the kernel about its network.
pub struct Netlink {
    socket: OwnedFd,
}

struct Message<'a> {
    kind: u16,
    flags: u16,
    body: &'a [u8],
}

impl Netlink {
    pub fn open() -> Result<Netlink, String> {
        Netlink::to(libc::NETLINK_ROUTE)
    }

    /// A conversation with one of the kernel's protocols, such as `NETLINK_GENERIC`.
    pub fn to(protocol: libc::c_int) -> Result<Netlink, String> {
        let last_error = || errno::of(io::Error::last_os_error());
        // SAFETY: a new descriptor of our own, closed by its owner.
        let socket = unsafe {
            let socket = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol);
            if socket < 0 {
                return Err(last_error());
            }
            OwnedFd::from_raw_fd(socket)
        };
        for option in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK] {
            let on: libc::c_int = 1;
            // SAFETY: a descriptor of ours and an int.
            // A kernel that cannot do it says errors without words.
            unsafe {
                let length = size_of::<libc::c_int>() as libc::socklen_t;
                let value = (&raw const on).cast();
                libc::setsockopt(socket.as_raw_fd(), libc::SOL_NETLINK, option, value, length);
            }
        }
        Ok(Netlink { socket })
    }

    /// Have something done. The error is in the kernel's own words where it has some.
    pub fn request(&self, kind: u16, flags: i32, body: &[u8]) -> Result<(), String> {
        self.send(kind, flags | libc::NLM_F_ACK, body)?;
        self.answers(|_| ()).map(|_| ())
    }

    /// The bodies of the messages that answer a question.
    pub fn ask(&self, kind: u16, body: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        self.send(kind, libc::NLM_F_ACK, body)?;
        self.answers(|message| message.to_vec())
    }

    /// The bodies of all messages that answer a request for a listing.
    pub fn list(&self, kind: u16, body: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        self.send(kind, libc::NLM_F_DUMP, body)?;
        self.answers(|message| message.to_vec())
    }

    fn send(&self, kind: u16, flags: i32, body: &[u8]) -> Result<(), String> {
        let mut message = Vec::new();
        message.extend(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(((flags | libc::NLM_F_REQUEST) as u16).to_ne_bytes());
        // Sequence and sender: there is one request at a time.
        message.extend([0; 8]);
        message.extend(body);
        // SAFETY: a descriptor of ours and memory of the given length.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
        if sent < 0 {
            return Err(errno::of(io::Error::last_os_error()));
        }
        Ok(())
    }

    /// Everything up to the acknowledgement or the end of the listing.
    fn answers<T>(&self, take: impl Fn(&[u8]) -> T) -> Result<Vec<T>, String> {
        let mut found = Vec::new();
        let mut buffer = vec![0; ANSWER_BYTES];
        loop {
            let bytes = self.receive(&mut buffer)?;
            for message in Messages(bytes) {
                match i32::from(message.kind) {
                    libc::NLMSG_DONE | libc::NLMSG_ERROR => return verdict(&message).map(|()| found),
                    _ => found.push(take(message.body)),
                }
            }
        }
    }

    fn receive<'a>(&self, buffer: &'a mut [u8]) -> Result<&'a [u8], String> {
        // SAFETY: a descriptor of ours and memory of the given length.
        let taken = unsafe { libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        match taken {
            0 => Err("the kernel does not answer".to_owned()),
            1.. => Ok(&buffer[..taken as usize]),
            _ => Err(errno::of(io::Error::last_os_error())),
        }
    }
}

/// The result in an NLMSG_ERROR or NLMSG_DONE.
/// Both begin with an error number, 0 for success.
fn verdict(message: &Message<'_>) -> Result<(), String> {
    let number = message.body.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
    if number == 0 {
        return Ok(());
    }
    let error = errno::text(-number);
    let told = message.flags & NLM_F_ACK_TLVS != 0 && i32::from(message.kind) == libc::NLMSG_ERROR;
    // The request's header comes before the attributes (NETLINK_CAP_ACK cuts off its
    // body).
    let mut attributes = attributes(message.body.get(4 + HEADER_BYTES..).filter(|_| told).unwrap_or_default());
    match attributes.find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG) {
        Some((_, words)) => Err(format!("{error} ({})", text(words))),
        None => Err(error),
    }
}

/// The messages of one answer.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let header = self.0.get(..HEADER_BYTES)?;
        let length = u32::from_ne_bytes(*header.first_chunk()?) as usize;
        let message = Message {
            kind: u16::from_ne_bytes([header[4], header[5]]),
            flags: u16::from_ne_bytes([header[6], header[7]]),
            body: self.0.get(HEADER_BYTES..length)?,
        };
        self.0 = self.0.get(aligned(length)..).unwrap_or_default();
        Some(message)
    }
}

/// The attributes in `bytes`: kind and content.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let header = rest.get(..ATTRIBUTE_HEADER_BYTES)?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        // The two highest bits are flags.
        let kind = u16::from_ne_bytes([header[2], header[3]]) & 0x3fff;
        let content = rest.get(ATTRIBUTE_HEADER_BYTES..length)?;
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some((kind, content))
    })
}

/// An attribute, padded to where the next one may begin.
pub fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = ATTRIBUTE_HEADER_BYTES + content.len();
    let mut bytes = Vec::with_capacity(aligned(length));
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(aligned(length), 0);
    bytes
}

/// The content of an attribute that is a string.
pub fn text(content: &[u8]) -> String {
    let end = content.iter().position(|byte| *byte == 0).unwrap_or(content.len());
    String::from_utf8_lossy(&content[..end]).into_owned()
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_back_as_they_were_made() {
        let bytes = [attribute(1, b"fq\0"), attribute(2, &[7; 8]), attribute(3, &[])].concat();
        assert_eq!(bytes.len() % 4, 0);
        let found: Vec<(u16, &[u8])> = attributes(&bytes).collect();
        assert_eq!(found, [(1, &b"fq\0"[..]), (2, &[7; 8][..]), (3, &[][..])]);
        assert_eq!(text(found[0].1), "fq");
    }

    #[test]
    fn what_is_cut_off_is_not_read() {
        let bytes = attribute(2, &[7; 8]);
        assert_eq!(attributes(&bytes[..7]).count(), 0);
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0, "shorter than its own header");
        assert_eq!(Messages(&[255; 20]).count(), 0);
    }

    #[test]
    fn every_kernel_lists_its_interfaces() {
        let netlink = Netlink::open().unwrap();
        assert!(!netlink.list(libc::RTM_GETLINK, &[0; 16]).unwrap().is_empty());
    }
}
