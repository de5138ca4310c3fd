//! A network interface as ethtool(8) sees it (linux/ethtool.h, SIOCETHTOOL).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::errno;

const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
/// ETH_GSTRING_LEN
const STRING_BYTES: usize = 32;
const WORD_BYTES: usize = 4;

/// An interface and a socket to ask through.
pub struct Interface<'a> {
    name: &'a str,
    socket: OwnedFd,
}

impl<'a> Interface<'a> {
    pub fn open(name: &'a str) -> Result<Interface<'a>, String> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(format!("{name:?} is no name of a network interface"));
        }
        // SAFETY: a new descriptor of our own.
        let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(format!("{name}: {}", errno::of(io::Error::last_os_error())));
        }
        // SAFETY: it is open and has no other owner.
        Ok(Interface { name, socket: unsafe { OwnedFd::from_raw_fd(socket) } })
    }

    /// One request; the kernel answers in place.
    /// Returns what the ioctl returns. `words` is the whole structure, with its command first, and must be as long as
    /// the kernel expects.
    pub fn ask(&self, words: &mut [u32]) -> io::Result<i32> {
        // SAFETY: the request is zeroed, the name is shorter than its place, and the words
        // live through the call.
        let result = unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            for (place, byte) in request.ifr_name.iter_mut().zip(self.name.bytes()) {
                *place = byte as libc::c_char;
            }
            request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
            libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(result)
    }

    /// The strings of a set, such as the names of the features.
    pub fn strings(&self, set: u32) -> io::Result<Vec<String>> {
        // struct ethtool_sset_info: a 64-bit mask of the sets asked for, then one count
        // for each.
        let mut information = [ETHTOOL_GSSET_INFO, 0, 1 << set, 0, 0];
        self.ask(&mut information)?;
        let count = if information[2] == 0 { 0 } else { information[4] as usize };
        // struct ethtool_gstrings. The number of a kernel's strings of a set is constant.
        let mut strings = vec![0; 3 + count * STRING_BYTES / WORD_BYTES];
        strings[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, set, count as u32]);
        self.ask(&mut strings)?;
        let text: Vec<u8> = strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(text.chunks_exact(STRING_BYTES).map(until_zero).collect())
    }

    /// The error of a request, with the interface and what was asked for.
    pub fn refused(&self, what: &str, error: io::Error) -> String {
        format!("{what} of {}: {}", self.name, errno::of(error))
    }
}

fn until_zero(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
