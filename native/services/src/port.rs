//! Who listens to a TCP port of the loopback: the service itself, or another program that was faster.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::account;

const LISTENING: &str = "0A";
/// 127.0.0.1, also within IPv6, and ::1.
const LOOPBACK: &str = "0100007F";
const LOOPBACK_6: &str = "00000000000000000000000001000000";

/// A listening socket, as /proc/net/tcp has it (proc_net_tcp(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    uid: u32,
    inode: u64,
}

/// Why a service could not listen to the port.
pub fn obstacle(port: u16) -> Option<String> {
    let error = TcpListener::bind(loopback(port)).err()?;
    Some(match error.kind() {
        ErrorKind::AddrInUse => format!("port {port} is already in use by another program"),
        ErrorKind::PermissionDenied => format!("port {port} requires root"),
        _ => format!("port {port} cannot be used: {error}"),
    })
}

/// Whether the service accepts connections to the port. The error says that another program does.
pub fn is_served(port: u16, attempt: Duration) -> Result<bool, String> {
    let answers = TcpStream::connect_timeout(&loopback(port), attempt).is_ok();
    require_own(port)?;
    Ok(answers)
}

/// The error says that a program that is none of the service's listens to the port.
pub fn require_own(port: u16) -> Result<(), String> {
    let there = listeners(port);
    if there.is_empty() {
        return Ok(()); // Also where the kernel does not tell.
    }
    let own = Own::now();
    match there.iter().find(|listener| !own.has(listener)) {
        None => Ok(()),
        Some(stranger) => {
            Err(format!("port {port} was taken by another program (of user {}) while it started", stranger.uid))
        }
    }
}

/// The sockets of the descendants of this process. Of a process that does not show them, all of its user count.
#[derive(Default)]
struct Own {
    inodes: BTreeSet<u64>,
    hidden: BTreeSet<u32>,
}

impl Own {
    fn now() -> Own {
        let mut own = Own::default();
        for pid in account::descendants() {
            match fs::read_dir(format!("/proc/{pid}/fd")) {
                Ok(entries) => own.inodes.extend(entries.flatten().filter_map(|entry| {
                    let target = fs::read_link(entry.path()).ok()?;
                    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()
                })),
                Err(_) => own.hidden.extend(fs::metadata(format!("/proc/{pid}")).map(|about| about.uid())),
            }
        }
        own
    }

    fn has(&self, listener: &Listener) -> bool {
        self.inodes.contains(&listener.inode) || self.hidden.contains(&listener.uid)
    }
}

fn listeners(port: u16) -> Vec<Listener> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    tables.iter().flat_map(|path| in_table(&fs::read_to_string(path).unwrap_or_default(), port)).collect()
}

/// Those of a table to which a client of the loopback is connected: bound to it, or to every address.
fn in_table(table: &str, port: u16) -> Vec<Listener> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, number) = fields.get(1)?.split_once(':')?;
        let reached = address.chars().all(|digit| digit == '0') || address.ends_with(LOOPBACK) || address == LOOPBACK_6;
        let wanted = u16::from_str_radix(number, 16) == Ok(port) && fields.get(3) == Some(&LISTENING);
        let inode = fields.get(9)?.parse().ok().filter(|_| reached && wanted)?;
        Some(Listener { uid: fields.get(7)?.parse().ok()?, inode })
    };
    table.lines().skip(1).filter_map(line).collect()
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0
   1: 00000000:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000     5        0 12 1 0 100 0 0 10 0
   2: 0101A8C0:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000     5        0 13 1 0 100 0 0 10 0
   3: 0100007F:4E20 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     5        0 14 1 0 100 0 0 10 0
   4: 0100007F:4E21 00000000:0000 0A 00000000:00000000 00:00000000 00000000     5        0 15 1 0 100 0 0 10 0
";

    #[test]
    fn only_listeners_that_the_loopback_reaches_count() {
        let found = in_table(TABLE, 20_000);
        assert_eq!(found, [Listener { uid: 1000, inode: 11 }, Listener { uid: 5, inode: 12 }]);
    }

    #[test]
    fn a_port_that_another_process_listens_to_is_not_the_services() {
        // This process has no descendant that listens: it is the stranger itself.
        let stranger = TcpListener::bind(loopback(0)).unwrap();
        let port = stranger.local_addr().unwrap().port();
        assert!(is_served(port, Duration::from_secs(1)).unwrap_err().contains("taken by another program"));
        assert!(obstacle(port).unwrap().contains("in use by another program"));
        drop(stranger);
        assert_eq!(is_served(port, Duration::from_secs(1)), Ok(false));
        assert_eq!(obstacle(port), None);
    }
}
