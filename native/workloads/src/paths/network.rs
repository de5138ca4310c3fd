//! Two network namespaces with one or two links, each with a rate and a delay.
//!
//! Nothing of it is seen outside, and nothing stays: the namespaces end with their processes, and the links with them.
//! Sources: network_namespaces(7), veth(4), rtnetlink(7), linux/pkt_sched.h (netem).

use std::ffi::CString;
use std::io::Error;
use std::net::Ipv4Addr;

use ajuste_agent::place::netlink::{Netlink, attribute};

use crate::request::Fault;

/// One link, alike in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub rate_kbit: u64,
    pub delay_ms: u64,
}

/// The two ends of every link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Sender,
    Receiver,
}

// linux/if_link.h, linux/if_addr.h, linux/veth.h
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_PID: u16 = 19;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const LINK_HEADER_BYTES: usize = 16;
const PREFIX_BITS: u8 = 24;

// linux/pkt_sched.h, linux/rtnetlink.h
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_LATENCY64: u16 = 10;
const TC_H_ROOT: u32 = u32::MAX;
/// `1:`
const HANDLE: u32 = 0x1_0000;
const EVERY_PACKET: u32 = u32::MAX;

const PACKET_BYTES: u64 = 1514;
/// A link's queue holds what it sends in this time, as an ordinary router does.
const QUEUE_MS: u64 = 50;
const LEAST_QUEUE_PACKETS: u64 = 20;

/// The name of a link's interface, at both ends.
pub fn interface(link: usize) -> String {
    format!("path{link}")
}

/// The address of one end of a link.
pub fn address(link: usize, end: End) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, link as u8 + 1, if end == End::Sender { 1 } else { 2 })
}

/// Move into a new network namespace.
/// Without root it needs a user namespace first, where that is allowed.
pub fn leave() -> Result<(), Fault> {
    // SAFETY: takes numbers only; this process has one thread.
    let left = unsafe {
        libc::unshare(libc::CLONE_NEWNET) == 0 || libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) == 0
    };
    if left {
        return Ok(());
    }
    Err(Fault::Run(format!("cannot have a network namespace: {} (it takes root)", Error::last_os_error())))
}

/// Make the links from here to the namespace of the process `receiver`.
pub fn connect(links: usize, receiver: libc::pid_t) -> Result<(), Fault> {
    let netlink = open()?;
    for link in 0..links {
        let name = attribute(IFLA_IFNAME, &zero_ended(&interface(link)));
        let peer = [vec![0; LINK_HEADER_BYTES], name.clone(), attribute(IFLA_NET_NS_PID, &receiver.to_ne_bytes())];
        let data = attribute(IFLA_INFO_DATA, &attribute(VETH_INFO_PEER, &peer.concat()));
        let kind = attribute(IFLA_INFO_KIND, b"veth\0");
        let info = attribute(IFLA_LINKINFO, &[kind, data].concat());
        let body = [vec![0; LINK_HEADER_BYTES], name, info].concat();
        let made = netlink.request(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body);
        made.map_err(|reason| refused("make a pair of interfaces (veth)", &reason))?;
    }
    Ok(())
}

/// Give this end of every link its address and its pace, and switch it on.
pub fn switch_on(links: &[Link], end: End) -> Result<(), Fault> {
    let netlink = open()?;
    for (number, link) in links.iter().enumerate() {
        let index = index_of(&interface(number))?;
        let address = address(number, end).octets();
        let about = [&[libc::AF_INET as u8, PREFIX_BITS, 0, 0][..], &index.to_ne_bytes()].concat();
        let body = [about, attribute(IFA_LOCAL, &address), attribute(IFA_ADDRESS, &address)].concat();
        let given = netlink.request(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body);
        given.map_err(|reason| refused("give an interface its address", &reason))?;
        // A packet is a packet: several in one, as a card takes them, would pass in one
        // go.
        let body = [link_header(index), attribute(IFLA_GSO_MAX_SEGS, &1_u32.to_ne_bytes())].concat();
        let up = netlink.request(libc::RTM_NEWLINK, 0, &body);
        up.map_err(|reason| refused("switch an interface on", &reason))?;
        pace(&netlink, index, *link, 0)?;
    }
    Ok(())
}

/// Lose everything sent from this end of a link, silently.
pub fn lose(number: usize, link: Link) -> Result<(), Fault> {
    pace(&open()?, index_of(&interface(number))?, link, EVERY_PACKET)
}

/// Bytes that have arrived at this end of each link.
pub fn arrived_bytes(links: usize) -> Result<Vec<u64>, Fault> {
    let text = std::fs::read_to_string("/proc/net/dev")
        .map_err(|error| Fault::Run(format!("cannot read /proc/net/dev: {error}")))?;
    let of = |link| received(&text, &interface(link));
    (0..links).map(|link| of(link).ok_or_else(|| Fault::Run("/proc/net/dev lacks an interface".into()))).collect()
}

/// The bytes received by `name`, of proc_pid_net(5)'s `dev`.
fn received(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A queue with the link's rate, delay and losses (of 2³² packets).
fn pace(netlink: &Netlink, index: u32, link: Link, loss: u32) -> Result<(), Fault> {
    let in_flight = link.rate_kbit * (link.delay_ms + QUEUE_MS) / 8 / PACKET_BYTES;
    let limit = in_flight.max(LEAST_QUEUE_PACKETS) as u32;
    // struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter
    let options = [0, limit, loss, 0, 0, 0].map(u32::to_ne_bytes).concat();
    let delay_ns = (link.delay_ms * 1_000_000) as i64;
    // struct tc_netem_rate: bytes a second, overhead of a packet, size of a cell, its
    // overhead
    let rate = [(link.rate_kbit * 1000 / 8) as u32, 0, 0, 0].map(u32::to_ne_bytes).concat();
    let all =
        [options, attribute(TCA_NETEM_LATENCY64, &delay_ns.to_ne_bytes()), attribute(TCA_NETEM_RATE, &rate)].concat();
    // struct tcmsg: family, interface, handle, parent, info
    let header = [0, index, HANDLE, TC_H_ROOT, 0].map(u32::to_ne_bytes).concat();
    let body = [header, attribute(TCA_KIND, b"netem\0"), attribute(TCA_OPTIONS, &all)].concat();
    let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    let set = netlink.request(libc::RTM_NEWQDISC, flags, &body);
    set.map_err(|reason| refused("give a link its rate and delay (sch_netem)", &reason))
}

/// struct ifinfomsg that switches an interface on.
fn link_header(index: u32) -> Vec<u8> {
    let up = libc::IFF_UP as u32;
    [0, index, up, up].map(u32::to_ne_bytes).concat()
}

fn index_of(name: &str) -> Result<u32, Fault> {
    let words = CString::new(name).unwrap_or_default();
    // SAFETY: a string that ends with zero.
    match unsafe { libc::if_nametoindex(words.as_ptr()) } {
        0 => Err(refused("find the interface", name)),
        index => Ok(index),
    }
}

fn open() -> Result<Netlink, Fault> {
    Netlink::open().map_err(|reason| refused("speak to the kernel's network", &reason))
}

fn zero_ended(name: &str) -> Vec<u8> {
    [name.as_bytes(), b"\0"].concat()
}

fn refused(what: &str, reason: &str) -> Fault {
    Fault::Run(format!("cannot {what}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_not_taken_for_one_with_a_longer_name() {
        let text = "Inter-| Receive\n face |bytes\n path10: 7 1 0\n  path1:42 1 0\n";
        assert_eq!(received(text, "path1"), Some(42));
        assert_eq!(received(text, "path2"), None);
    }

    #[test]
    fn each_link_is_a_network_of_its_own() {
        assert_eq!(address(0, End::Sender).to_string(), "10.0.1.1");
        assert_eq!(address(1, End::Receiver).to_string(), "10.0.2.2");
    }
}
