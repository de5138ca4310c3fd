//! One connection, TCP or Multipath TCP, over one or two links for a given time.
//! The links are in network namespaces.
//!
//! The sender is in one network namespace, the receiver in another; each link between them has a rate and a delay
//! (`network`). The first link may be lost midway: then all that is sent into it is dropped silently. Plain TCP uses
//! the first link only; the receiver announces the second link to Multipath TCP.
//!
//! Output, to be read by programs; bytes of a path are all that arrived on it, headers and repetitions too:
//! ```text
//! paths protocol=mptcp paths=2 elapsed_ns=5000000000 received_bytes=… stall_ns=… path_bytes=…,…
//! subflows token=0x1c2a7f1 fallback=no acked_bytes=…,…
//! ```
//! The second line is what the connection itself says; it is missing for plain TCP and before Linux 5.16.

mod multipath;
mod network;
mod transfer;

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use lexopt::prelude::*;

use crate::clock::now_ns;
use crate::crowd::child;
use crate::paths::multipath::Connection;
use crate::paths::network::{End, Link};
use crate::paths::transfer::{Received, Timetable};
use crate::request::{Fault, number};

const MOST_KBIT: u64 = 1_000_000;
const MOST_DELAY_MS: u64 = 2000;
const ID_OF_SECOND: u8 = 2;
const GO: u8 = 1;

struct Request {
    multipath: bool,
    links: Vec<Link>,
    duration_ns: i64,
    lost_after_ns: Option<i64>,
}

/// What the receiver tells the sender at the end: three or four numbers.
struct Told {
    received: Received,
    path_bytes: Vec<u64>,
}

pub fn run(arguments: lexopt::Parser) -> Result<(), Fault> {
    let request = read(arguments)?;
    network::leave()?;
    let (mut ours, theirs) = UnixStream::pair()?;
    let receiver = child(&|| receive(&request, &theirs).inspect_err(|fault| eprintln!("ajuste-workloads: {fault}")))?;
    // Only the receiver has it now, so that its end is noticed.
    drop(theirs);
    await_go(&mut ours)?;
    network::connect(request.links.len(), receiver)?;
    network::switch_on(&request.links, End::Sender)?;
    if request.multipath {
        multipath::allow_subflows()?;
    }
    ours.write_all(&[GO])?;
    await_go(&mut ours)?;
    let mut stream = transfer::connect(network::address(0, End::Receiver), request.multipath)?;
    let began_ns = now_ns();
    transfer::send(&mut stream, &mut request.timetable(began_ns))?;
    let connection = multipath::connection(stream.as_fd()).filter(|_| request.multipath);
    ours.write_all(&[GO])?;
    let told = Told::read(&mut ours, request.links.len())?;
    say(&request, &told, connection)
}

fn read(mut arguments: lexopt::Parser) -> Result<Request, Fault> {
    let mut multipath = false;
    let mut first = Link { rate_kbit: 10_000, delay_ms: 10 };
    let mut second = Link { rate_kbit: 0, delay_ms: 40 };
    let (mut milliseconds, mut lost_after_ms) = (5000, 0);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("protocol") => multipath = protocol(&mut arguments)?,
            Long("rate-kbit") => first.rate_kbit = number(&mut arguments, "rate-kbit", 10, MOST_KBIT)?,
            Long("delay-ms") => first.delay_ms = number(&mut arguments, "delay-ms", 0, MOST_DELAY_MS)?,
            Long("second-rate-kbit") => second.rate_kbit = number(&mut arguments, "second-rate-kbit", 0, MOST_KBIT)?,
            Long("second-delay-ms") => second.delay_ms = number(&mut arguments, "second-delay-ms", 0, MOST_DELAY_MS)?,
            Long("milliseconds") => milliseconds = number(&mut arguments, "milliseconds", 100, 86_400_000)?,
            Long("lost-after-ms") => lost_after_ms = number(&mut arguments, "lost-after-ms", 0, 86_400_000)?,
            other => return Err(other.unexpected().into()),
        }
    }
    let links = if second.rate_kbit == 0 { vec![first] } else { vec![first, second] };
    let lost_after_ns = (lost_after_ms > 0).then_some(lost_after_ms as i64 * 1_000_000);
    Ok(Request { multipath, links, duration_ns: milliseconds as i64 * 1_000_000, lost_after_ns })
}

fn protocol(arguments: &mut lexopt::Parser) -> Result<bool, Fault> {
    match arguments.value()?.string()?.as_str() {
        "tcp" => Ok(false),
        "mptcp" => Ok(true),
        other => Err(Fault::Request(format!("--protocol is tcp or mptcp, not {other:?}").into())),
    }
}

impl Request {
    fn timetable(&self, began_ns: i64) -> Timetable {
        Timetable {
            ends_at_ns: began_ns + self.duration_ns,
            first_lost: self.lost_after_ns.map(|after| (began_ns + after, self.links[0])),
        }
    }
}

/// The receiver, in a separate process and network namespace.
fn receive(request: &Request, mut sender: &UnixStream) -> Result<(), Fault> {
    network::leave()?;
    sender.write_all(&[GO])?;
    await_go(&mut sender)?;
    network::switch_on(&request.links, End::Receiver)?;
    if request.multipath {
        multipath::allow_subflows()?;
    }
    if request.multipath && request.links.len() > 1 {
        multipath::announce(network::address(1, End::Receiver), ID_OF_SECOND)?;
    }
    let listener = transfer::listen(request.multipath)?;
    sender.write_all(&[GO])?;
    let (mut stream, _) = listener.accept()?;
    let received = transfer::receive(&mut stream, &mut request.timetable(now_ns()))?;
    let path_bytes = network::arrived_bytes(request.links.len())?;
    // The connection must not end before the sender has looked at it.
    await_go(&mut sender)?;
    Told { received, path_bytes }.write(&mut sender)
}

impl Told {
    fn write(&self, to: &mut impl Write) -> Result<(), Fault> {
        let mut numbers = vec![self.received.bytes, self.received.stall_ns as u64];
        numbers.extend(&self.path_bytes);
        Ok(to.write_all(&numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>())?)
    }

    fn read(from: &mut impl Read, links: usize) -> Result<Told, Fault> {
        let mut numbers = vec![0; 2 + links];
        for number in &mut numbers {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes).map_err(|_| receiver_ended())?;
            *number = u64::from_ne_bytes(bytes);
        }
        let path_bytes = numbers.split_off(2);
        Ok(Told { received: Received { bytes: numbers[0], stall_ns: numbers[1] as i64 }, path_bytes })
    }
}

fn await_go(from: &mut impl Read) -> Result<(), Fault> {
    from.read_exact(&mut [0]).map_err(|_| receiver_ended())
}

fn receiver_ended() -> Fault {
    Fault::Run("the other end of the links has failed".into())
}

fn say(request: &Request, told: &Told, connection: Option<Connection>) -> Result<(), Fault> {
    let mut out = std::io::stdout().lock();
    let protocol = if request.multipath { "mptcp" } else { "tcp" };
    let Received { bytes, stall_ns } = told.received;
    let path_bytes = listed(&told.path_bytes);
    let (paths, elapsed_ns) = (request.links.len(), request.duration_ns);
    writeln!(
        out,
        "paths protocol={protocol} paths={paths} elapsed_ns={elapsed_ns} received_bytes={bytes} stall_ns={stall_ns} \
         path_bytes={path_bytes}"
    )?;
    if let Some(Connection { fallback, token, subflow_bytes }) = connection {
        let fallback = if fallback { "yes" } else { "no" };
        writeln!(out, "subflows token={token:#x} fallback={fallback} acked_bytes={}", listed(&subflow_bytes))?;
    }
    Ok(())
}

fn listed(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}
