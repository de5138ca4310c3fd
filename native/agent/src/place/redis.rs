//! Settings of a running Redis or Valkey: CONFIG GET and CONFIG SET.
//!
//! They are in the memory of the server only: a server that ends takes them with it.

use std::io::{self, BufRead, BufReader, Read};

use crate::place::server::{Connection, Missing, connect, failed};

const LONGEST_BYTES: usize = 1 << 20;
const MOST_ITEMS: usize = 1 << 10;

/// The current value as the server shows it.
pub fn read(address: &str, name: &str) -> Result<String, String> {
    Server::open(address).map_err(Missing::words)?.value(name)
}

/// Set a value. The server must show it as it is given, or else it cannot be compared later.
pub fn write(address: &str, name: &str, value: &str) -> Result<(), String> {
    let mut server = Server::open(address).map_err(Missing::words)?;
    server.ask(&["CONFIG", "SET", name, value])?;
    match server.value(name)? {
        shown if shown == value => Ok(()),
        shown => Err(format!("the server shows {shown:?} for {value:?}; write {shown}")),
    }
}

/// Whether a server is there. If none is, its settings went with it.
pub fn is_there(address: &str) -> bool {
    !matches!(connect(address), Err(Missing::Absent(_)))
}

struct Server<'a> {
    address: &'a str,
    connection: BufReader<Box<dyn Connection>>,
}

/// What the server answers (RESP 2).
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Text(String),
    Refused(String),
    Nothing,
    List(Vec<Reply>),
}

impl<'a> Server<'a> {
    fn open(address: &'a str) -> Result<Server<'a>, Missing> {
        Ok(Server { address, connection: BufReader::new(connect(address)?) })
    }

    fn value(&mut self, name: &str) -> Result<String, String> {
        let Reply::List(items) = self.ask(&["CONFIG", "GET", name])? else {
            return Err(format!("{} does not answer as Redis does", self.address));
        };
        // A name may be a pattern of several.
        match items.as_slice() {
            [Reply::Text(found), Reply::Text(value)] if found.eq_ignore_ascii_case(name) => Ok(value.clone()),
            _ => Err(format!("the server at {} has no setting {name}", self.address)),
        }
    }

    fn ask(&mut self, words: &[&str]) -> Result<Reply, String> {
        let reply = self.connection.get_mut().write_all(&request(words)).and_then(|()| reply(&mut self.connection, 2));
        match reply.map_err(|error| failed(self.address, &error))? {
            Reply::Refused(why) if why.starts_with("NOAUTH") => {
                Err(format!("{}: a server with a password is not supported", self.address))
            }
            Reply::Refused(why) => Err(why.strip_prefix("ERR ").unwrap_or(&why).to_owned()),
            reply => Ok(reply),
        }
    }
}

/// An array of strings, each with its length: no text can end early.
fn request(words: &[&str]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    request
}

fn reply(from: &mut impl BufRead, depth: usize) -> io::Result<Reply> {
    let wrong = || io::Error::other("it does not answer as Redis does");
    let line = line(from)?;
    let (kind, rest) = line.split_at_checked(1).ok_or_else(wrong)?;
    let count = || rest.parse::<i64>().map_err(|_| wrong());
    match kind {
        "+" | ":" => Ok(Reply::Text(rest.to_owned())),
        "-" => Ok(Reply::Refused(rest.to_owned())),
        "$" | "*" if count()? < 0 => Ok(Reply::Nothing),
        "$" => {
            let length = usize::try_from(count()?).ok().filter(|length| *length <= LONGEST_BYTES).ok_or_else(wrong)?;
            let mut bytes = vec![0; length + 2];
            from.read_exact(&mut bytes)?;
            bytes.truncate(length);
            Ok(Reply::Text(String::from_utf8(bytes).map_err(|_| wrong())?))
        }
        "*" if depth > 0 => {
            let length = usize::try_from(count()?).ok().filter(|length| *length <= MOST_ITEMS).ok_or_else(wrong)?;
            Ok(Reply::List((0..length).map(|_| reply(from, depth - 1)).collect::<io::Result<_>>()?))
        }
        _ => Err(wrong()),
    }
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(LONGEST_BYTES as u64).read_until(b'\n', &mut bytes)?;
    let text = bytes.strip_suffix(b"\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    String::from_utf8(text.to_vec()).map_err(|_| io::Error::other("it does not answer as Redis does"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_ends_its_word() {
        let asked = request(&["CONFIG", "SET", "x", "1\r\n*1\r\n$8\r\nFLUSHALL"]);
        assert_eq!(asked, b"*4\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$1\r\nx\r\n$19\r\n1\r\n*1\r\n$8\r\nFLUSHALL\r\n");
    }

    #[test]
    fn only_whole_replies_are_taken() {
        let read = |bytes: &[u8]| reply(&mut &*bytes, 2);
        let text = |text: &str| Reply::Text(text.to_owned());
        assert_eq!(read(b"*2\r\n$2\r\nhz\r\n$2\r\n10\r\n").unwrap(), Reply::List(vec![text("hz"), text("10")]));
        assert_eq!(read(b"-ERR no\r\n").unwrap(), Reply::Refused("ERR no".to_owned()));
        assert_eq!(read(b"$-1\r\n").unwrap(), Reply::Nothing);
        for wrong in ["", "\r\n", "$5\r\nhz\r\n", "$99999999999\r\n", "*9999\r\n", "HTTP/1.1 400\r\n", "+OK", "é\r\n"]
        {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        assert!(read("*1\r\n".repeat(99).as_bytes()).is_err());
    }
}
