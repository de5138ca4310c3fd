//! Connections to servers of this machine, whose own settings are places.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::errno;

/// For each read and write: a server that is stopped must not keep the old values from the others.
const PATIENCE: Duration = Duration::from_secs(2);

/// A connection whose reads and writes have a time limit.
pub trait Connection: io::Read + io::Write {}

impl<T: io::Read + io::Write> Connection for T {}

/// Why there is no connection.
pub enum Missing {
    /// Nobody listens there.
    Absent(String),
    Other(String),
}

impl Missing {
    pub fn words(self) -> String {
        let (Missing::Absent(words) | Missing::Other(words)) = self;
        words
    }

    fn of(address: &str, error: io::Error) -> Missing {
        let absent = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
        let words = format!("{address}: {}", errno::of(error));
        if absent { Missing::Absent(words) } else { Missing::Other(words) }
    }
}

/// Connect to a socket, or to an address and port of the loopback interface.
pub fn connect(address: &str) -> Result<Box<dyn Connection>, Missing> {
    if address.starts_with('/') {
        let stream = connect_socket(Path::new(address)).map_err(|error| Missing::of(address, error))?;
        return Ok(Box::new(stream));
    }
    let parsed: Option<SocketAddr> = address.parse().ok();
    let Some(parsed) = parsed.filter(|parsed| parsed.ip().is_loopback()) else {
        return Err(Missing::Other(format!("{address:?} is neither a socket nor an address of this machine")));
    };
    let stream = TcpStream::connect_timeout(&parsed, PATIENCE).and_then(|stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    });
    stream.map(|stream| Box::new(stream) as Box<dyn Connection>).map_err(|error| Missing::of(address, error))
}

pub fn connect_socket(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// What a failed read or write says of the server at `address`.
pub fn failed(address: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock => format!("{address} did not answer within {} s", PATIENCE.as_secs()),
        io::ErrorKind::UnexpectedEof => format!("{address} closed the connection"),
        _ => format!("{address}: {error}"),
    }
}
