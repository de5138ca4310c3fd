//! Multipath TCP: requests to its path manager, and a connection's subflows.
//!
//! Sources: linux/mptcp.h, linux/mptcp_pm.h, Documentation/networking/mptcp.rst; net/mptcp/sockopt.c.

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use ajuste_agent::place::netlink::{Netlink, attribute, attributes};

use crate::request::Fault;

pub const IPPROTO_MPTCP: i32 = 262;

// linux/genetlink.h
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const GENERIC_HEADER_BYTES: usize = 4;

// linux/mptcp.h
const CMD_ADD_ADDR: u8 = 1;
const CMD_SET_LIMITS: u8 = 5;
const ATTR_ADDR: u16 = 1;
const ATTR_RCV_ADD_ADDRS: u16 = 2;
const ATTR_SUBFLOWS: u16 = 3;
const ADDR_FAMILY: u16 = 1;
const ADDR_ID: u16 = 2;
const ADDR_ADDR4: u16 = 3;
const ADDR_FLAGS: u16 = 6;
const FLAG_SIGNAL: u32 = 1;
const NESTED: u16 = 0x8000;
const MOST_EXTRA_SUBFLOWS: u32 = 2;

const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;
const MPTCP_TCPINFO: i32 = 2;
const INFO_FLAGS_AT: usize = 8;
const INFO_TOKEN_AT: usize = 12;
const FLAG_FALLBACK: u32 = 1;

/// struct mptcp_subflow_data, and struct tcp_info up to `tcpi_bytes_acked`.
const SUBFLOW_DATA_BYTES: usize = 16;
const TCP_INFO_BYTES: usize = 128;
const BYTES_ACKED_AT: usize = 120;
const MOST_SUBFLOWS: usize = 8;

/// The state of a connection.
/// `subflow_bytes` are those that the other side acknowledged on each subflow.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Connection {
    pub fallback: bool,
    /// The number under which the kernel's table has it.
    pub token: u32,
    pub subflow_bytes: Vec<u64>,
}

/// Let connections of this namespace have more subflows to announced addresses.
pub fn allow_subflows() -> Result<(), Fault> {
    let limits =
        [ATTR_RCV_ADD_ADDRS, ATTR_SUBFLOWS].map(|kind| attribute(kind, &MOST_EXTRA_SUBFLOWS.to_ne_bytes())).concat();
    tell(CMD_SET_LIMITS, &limits)
}

/// Tell the other side of each connection of this namespace about another address.
pub fn announce(address: Ipv4Addr, id: u8) -> Result<(), Fault> {
    let about = [
        attribute(ADDR_FAMILY, &(libc::AF_INET as u16).to_ne_bytes()),
        attribute(ADDR_ID, &[id]),
        attribute(ADDR_ADDR4, &address.octets()),
        attribute(ADDR_FLAGS, &FLAG_SIGNAL.to_ne_bytes()),
    ];
    tell(CMD_ADD_ADDR, &attribute(ATTR_ADDR | NESTED, &about.concat()))
}

/// The connection of a socket; `None` where the kernel cannot tell (before 5.16).
pub fn connection(socket: BorrowedFd) -> Option<Connection> {
    let info = option(socket, MPTCP_INFO, vec![0; 64])?;
    let number = |at: usize| info.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
    let mut asked = vec![0; SUBFLOW_DATA_BYTES + MOST_SUBFLOWS * TCP_INFO_BYTES];
    asked[..4].copy_from_slice(&(SUBFLOW_DATA_BYTES as u32).to_ne_bytes());
    asked[12..16].copy_from_slice(&(TCP_INFO_BYTES as u32).to_ne_bytes());
    let told = option(socket, MPTCP_TCPINFO, asked)?;
    Some(Connection {
        fallback: number(INFO_FLAGS_AT)? & FLAG_FALLBACK != 0,
        token: number(INFO_TOKEN_AT)?,
        subflow_bytes: acked(&told)?,
    })
}

/// The bytes acknowledged on each subflow, of what MPTCP_TCPINFO answers.
fn acked(told: &[u8]) -> Option<Vec<u64>> {
    let count = u32::from_ne_bytes(*told.get(4..)?.first_chunk()?) as usize;
    let each = told.get(SUBFLOW_DATA_BYTES..)?.chunks_exact(TCP_INFO_BYTES).take(count);
    each.map(|info| Some(u64::from_ne_bytes(*info[BYTES_ACKED_AT..].first_chunk()?))).collect()
}

fn option(socket: BorrowedFd, name: i32, mut value: Vec<u8>) -> Option<Vec<u8>> {
    let mut length = value.len() as libc::socklen_t;
    // SAFETY: memory of ours, of the given length.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), SOL_MPTCP, name, value.as_mut_ptr().cast(), &raw mut length) == 0
    };
    value.truncate(length as usize);
    done.then_some(value)
}

fn tell(command: u8, content: &[u8]) -> Result<(), Fault> {
    let told = family().and_then(|(netlink, id)| netlink.request(id, 0, &[&[command, 1, 0, 0], content].concat()));
    told.map_err(|reason| Fault::Run(format!("cannot speak to the path manager of MPTCP: {reason}")))
}

/// A conversation with the kernel's path manager, and its number (generic netlink).
fn family() -> Result<(Netlink, u16), String> {
    let netlink = Netlink::to(libc::NETLINK_GENERIC)?;
    let body = [&[CTRL_CMD_GETFAMILY, 1, 0, 0][..], &attribute(CTRL_ATTR_FAMILY_NAME, b"mptcp_pm\0")].concat();
    let answer = netlink.ask(GENL_ID_CTRL, &body)?.concat();
    let mut found = attributes(answer.get(GENERIC_HEADER_BYTES..).unwrap_or_default());
    let id = found.find_map(|(kind, content)| match content.first_chunk() {
        Some(bytes) if kind == CTRL_ATTR_FAMILY_ID => Some(u16::from_ne_bytes(*bytes)),
        _ => None,
    });
    Ok((netlink, id.ok_or("this kernel has none")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_as_many_subflows_as_there_are_is_read() {
        let mut told = vec![0; SUBFLOW_DATA_BYTES + 3 * TCP_INFO_BYTES];
        told[4] = 2;
        for (subflow, bytes) in [5_u64, 7, 9].into_iter().enumerate() {
            let at = SUBFLOW_DATA_BYTES + subflow * TCP_INFO_BYTES + BYTES_ACKED_AT;
            told[at..at + 8].copy_from_slice(&bytes.to_ne_bytes());
        }
        assert_eq!(acked(&told), Some(vec![5, 7]));
        assert_eq!(acked(&told[..6]), None, "cut off");
    }
}
