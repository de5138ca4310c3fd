//! One connection over the links: a sender without pauses, and a receiver.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::clock::now_ns;
use crate::paths::multipath::IPPROTO_MPTCP;
use crate::paths::network::{self, Link};
use crate::request::Fault;

const PORT: u16 = 5201;
const CHUNK_BYTES: usize = 65536;

/// When a transfer ends, and when the first link is lost (by `clock::now_ns`).
pub struct Timetable {
    pub ends_at_ns: i64,
    pub first_lost: Option<(i64, Link)>,
}

/// What the receiver saw; `stall_ns` is the longest time in which nothing came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    pub bytes: u64,
    pub stall_ns: i64,
}

/// Be there for connections, and for further subflows of them, on every link.
pub fn listen(multipath: bool) -> Result<TcpListener, Fault> {
    let socket = socket(multipath)?;
    let place = place(Ipv4Addr::UNSPECIFIED);
    // SAFETY: an address of ours and its length.
    let listens = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const place).cast(), size_of_val(&place) as libc::socklen_t) == 0
            && libc::listen(socket.as_raw_fd(), 1) == 0
    };
    listens.then(|| TcpListener::from(socket)).ok_or_else(|| failed("listen"))
}

pub fn connect(address: Ipv4Addr, multipath: bool) -> Result<TcpStream, Fault> {
    let socket = socket(multipath)?;
    let place = place(address);
    // SAFETY: an address of ours and its length.
    let done = unsafe {
        libc::connect(socket.as_raw_fd(), (&raw const place).cast(), size_of_val(&place) as libc::socklen_t) == 0
    };
    done.then(|| TcpStream::from(socket)).ok_or_else(|| failed("connect"))
}

/// Send until the time is over.
pub fn send(stream: &mut TcpStream, timetable: &mut Timetable) -> Result<(), Fault> {
    let chunk = vec![0; CHUNK_BYTES];
    stream.set_nonblocking(true)?;
    while timetable.wait_for(stream, libc::POLLOUT)? {
        match stream.write(&chunk) {
            Err(error) if !is_passing(&error) => return Err(Fault::Run(format!("cannot send: {error}"))),
            _ => {}
        }
    }
    Ok(())
}

/// Receive until the time is over.
pub fn receive(stream: &mut TcpStream, timetable: &mut Timetable) -> Result<Received, Fault> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut received = Received::default();
    let mut last_ns = now_ns();
    stream.set_nonblocking(true)?;
    while timetable.wait_for(stream, libc::POLLIN)? {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                let now = now_ns();
                received.bytes += count as u64;
                received.stall_ns = received.stall_ns.max(now - last_ns);
                last_ns = now;
            }
            Err(error) if !is_passing(&error) => return Err(Fault::Run(format!("cannot receive: {error}"))),
            Err(_) => {}
        }
    }
    received.stall_ns = received.stall_ns.max(timetable.ends_at_ns - last_ns);
    Ok(received)
}

impl Timetable {
    /// Wait until the stream can be used, and do what is due meanwhile.
    /// False when the time is over.
    fn wait_for(&mut self, stream: &TcpStream, what: libc::c_short) -> Result<bool, Fault> {
        loop {
            let now = now_ns();
            if now >= self.ends_at_ns {
                return Ok(false);
            }
            if let Some((_, link)) = self.first_lost.take_if(|(at, _)| now >= *at) {
                network::lose(0, link)?;
            }
            let next_ns = self.first_lost.map_or(self.ends_at_ns, |(at, _)| at.min(self.ends_at_ns));
            let rest_ns = (next_ns - now_ns()).max(0);
            let rest = libc::timespec { tv_sec: rest_ns / 1_000_000_000, tv_nsec: rest_ns % 1_000_000_000 };
            let mut waiting = libc::pollfd { fd: stream.as_fd().as_raw_fd(), events: what, revents: 0 };
            // SAFETY: one structure of ours, a time of ours.
            if unsafe { libc::ppoll(&raw mut waiting, 1, &raw const rest, std::ptr::null()) } > 0 {
                return Ok(true);
            }
        }
    }
}

fn is_passing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn socket(multipath: bool) -> Result<OwnedFd, Fault> {
    let protocol = if multipath { IPPROTO_MPTCP } else { libc::IPPROTO_TCP };
    // SAFETY: a new descriptor of our own, closed by its owner.
    unsafe {
        match libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, protocol) {
            -1 => Err(failed(if multipath { "open a socket of MPTCP" } else { "open a socket" })),
            socket => Ok(OwnedFd::from_raw_fd(socket)),
        }
    }
}

fn place(address: Ipv4Addr) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: PORT.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
        sin_zero: [0; 8],
    }
}

fn failed(what: &str) -> Fault {
    Fault::Run(format!("cannot {what}: {}", Error::last_os_error()))
}
