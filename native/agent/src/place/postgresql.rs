//! Settings of a running PostgreSQL: ALTER SYSTEM, and a reload of its configuration.
//!
//! They are in a file of the server's (`postgresql.auto.conf`), so they outlive the server and the boot of the machine.
//! What is restored is the entry of that file.
//!
//! The connection is that of the server's own user, whom it trusts on its socket (peer authentication).

use std::ffi::CStr;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::errno;
use crate::place::server::{connect_socket, failed};

const LONGEST_BYTES: usize = 1 << 20;
const MOST_MESSAGES: usize = 1000;
const LOADED_WITHIN: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
const PROTOCOL: u32 = 3 << 16;

/// The states: there is no entry, or one, of which follow the value in force, a colon, and its text. No level has a
/// colon.
const WITHOUT: &str = "without:";
const WITH: &str = "with:";
/// An entry was removed, and the server has not read that yet.
const UNREAD: &str = "without: (not in force)";

const AUTO_CONF: &str = "current_setting('data_directory') || '/postgresql.auto.conf'";

/// The value in force for a new connection without settings of its own.
pub fn read(socket: &str, name: &str) -> Result<String, String> {
    Session::open(socket)?.value(name)
}

pub fn state(socket: &str, name: &str) -> Result<String, String> {
    Session::open(socket)?.state(name)
}

/// The state, for the journal. Changes that nobody has loaded yet would come into force along with ours. They are seen
/// by the times of the files, which the server has in whole seconds.
pub fn keep(socket: &str, name: &str) -> Result<String, String> {
    let mut session = Session::open(socket)?;
    let newest = session.one(&format!(
        "SELECT coalesce(max((pg_stat_file(file, true)).modification) > pg_conf_load_time(), false) FROM \
         unnest(ARRAY[current_setting('config_file'), {AUTO_CONF}]) AS file"
    ))?;
    match (newest.as_str(), session.state(name)?.as_str()) {
        ("t", _) | (_, UNREAD) => Err("the server's configuration was changed: reload it first".to_owned()),
        (_, state) => Ok(state.to_owned()),
    }
}

/// Set a value for all connections, or restore a [`state`].
pub fn write(socket: &str, name: &str, value: &str) -> Result<(), String> {
    let mut session = Session::open(socket)?;
    let is_state = value == WITHOUT || value.starts_with(WITH);
    if !is_state {
        session.check_reloadable(name)?;
    }
    let kept = value.strip_prefix(WITH).and_then(|state| state.split_once(':')).map_or(value, |(_, entry)| entry);
    session.ask(&match value {
        WITHOUT => format!("ALTER SYSTEM RESET {}", identifier(name)),
        _ => format!("ALTER SYSTEM SET {} = {}", identifier(name), literal(kept)),
    })?;
    session = session.reload(socket)?;
    if is_state {
        return Ok(());
    }
    let shown = session.value(name)?;
    let of = format!("SELECT source FROM pg_settings WHERE name = {}", literal(name));
    match session.one(&of)?.as_str() {
        "configuration file" if shown.eq_ignore_ascii_case(value) => Ok(()),
        "configuration file" => Err(format!("the server shows {shown:?} for {value:?}; write {shown}")),
        other => Err(format!("it stays {shown:?}: it is set by the server's {other}, which overrides it")),
    }
}

/// A conversation with a server.
struct Session {
    stream: UnixStream,
    address: String,
}

/// Rows of columns; a null is an empty text.
type Rows = Vec<Vec<String>>;

impl Session {
    fn open(socket: &str) -> Result<Session, String> {
        let refused = |error: io::Error| format!("{socket}: {}", errno::of(error));
        let owner = owner(&connect_socket(Path::new(socket)).map_err(refused)?).map_err(refused)?;
        let user = user_name(owner).ok_or_else(|| format!("{socket}: its user {owner} has no name"))?;
        let mut session = Session { stream: connect_as(socket, owner).map_err(refused)?, address: socket.to_owned() };
        session.begin(&user)?;
        Ok(session)
    }

    fn begin(&mut self, user: &str) -> Result<(), String> {
        let options = "-c standard_conforming_strings=on -c client_encoding=UTF8";
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        for word in ["user", user, "database", "postgres", "application_name", "ajuste", "options", options] {
            body.extend(word.bytes());
            body.push(0);
        }
        body.push(0);
        self.send(&[&(body.len() as u32 + 4).to_be_bytes(), body.as_slice()].concat())?;
        self.rows().map(|_| ())
    }

    /// The rows of a query. Its texts must be quoted.
    fn ask(&mut self, query: &str) -> Result<Rows, String> {
        if query.contains('\0') {
            return Err("a text contains a zero byte".to_owned());
        }
        let length = (query.len() as u32 + 5).to_be_bytes();
        self.send(&[b"Q", length.as_slice(), query.as_bytes(), b"\0"].concat())?;
        self.rows()
    }

    /// The first column of the only row.
    fn one(&mut self, query: &str) -> Result<String, String> {
        match self.ask(query)?.as_mut_slice() {
            [row] if !row.is_empty() => Ok(row.swap_remove(0)),
            _ => Err(format!("{} does not answer as PostgreSQL does", self.address)),
        }
    }

    fn value(&mut self, name: &str) -> Result<String, String> {
        self.one(&format!("SELECT current_setting({})", literal(name)))
    }

    /// The entry in the server's own file, of which the last one counts, and whether it is in force.
    fn state(&mut self, name: &str) -> Result<String, String> {
        let of = format!("name = {} AND sourcefile = {AUTO_CONF}", literal(name));
        let rows = self.ask(&format!("SELECT setting FROM pg_file_settings WHERE {of} ORDER BY sourceline DESC"))?;
        if let Some(entry) = rows.first().and_then(|row| row.first()) {
            return Ok(format!("{WITH}{}:{entry}", self.value(name)?));
        }
        let in_force = self.ask(&format!("SELECT 1 FROM pg_settings WHERE {of}"))?;
        Ok(if in_force.is_empty() { WITHOUT } else { UNREAD }.to_owned())
    }

    fn check_reloadable(&mut self, name: &str) -> Result<(), String> {
        let rows = self.ask(&format!("SELECT context FROM pg_settings WHERE name = {}", literal(name)))?;
        match rows.first().and_then(|row| row.first()).map(String::as_str) {
            Some("sighup" | "superuser" | "user") => Ok(()),
            Some("postmaster") => Err("it takes effect only after a restart of the server".to_owned()),
            Some("backend" | "superuser-backend") => Err("it takes effect only for new connections".to_owned()),
            Some(_) => Err("it cannot be changed".to_owned()),
            None => Err(format!("the server at {} has no setting {name}", self.address)),
        }
    }

    /// Load the configuration. A new connection shows what all others have with their next command.
    fn reload(mut self, socket: &str) -> Result<Session, String> {
        const LOADED: &str = "SELECT pg_conf_load_time()";
        let before = self.one(LOADED)?;
        self.ask("SELECT pg_reload_conf()")?;
        let deadline = Instant::now() + LOADED_WITHIN;
        loop {
            let mut session = Session::open(socket)?;
            if session.one(LOADED)? != before {
                return Ok(session);
            }
            if Instant::now() > deadline {
                return Err(format!("the server did not load its configuration within {} s", LOADED_WITHIN.as_secs()));
            }
            thread::sleep(BETWEEN_LOOKS);
        }
    }

    fn send(&mut self, message: &[u8]) -> Result<(), String> {
        self.stream.write_all(message).map_err(|error| failed(&self.address, &error))
    }

    /// All that comes until the server is ready for the next query.
    fn rows(&mut self) -> Result<Rows, String> {
        let mut rows = Rows::new();
        let mut refused = None;
        for _ in 0..MOST_MESSAGES {
            let (kind, body) = message(&mut self.stream).map_err(|error| failed(&self.address, &error))?;
            match kind {
                b'D' => rows.extend(columns(&body)),
                b'R' if body != [0, 0, 0, 0] => {
                    return Err(format!("{} asks for a password: peer authentication is required", self.address));
                }
                b'E' => {
                    let why = error_message(&body);
                    if !self.is_begun(&body) {
                        return Err(format!("{}: {why}", self.address));
                    }
                    refused = Some(why);
                }
                b'Z' => return refused.map_or(Ok(rows), Err),
                _ => {}
            }
        }
        Err(format!("{} does not answer as PostgreSQL does", self.address))
    }

    /// A fatal error is the last message.
    fn is_begun(&self, body: &[u8]) -> bool {
        !fields(body).any(|(kind, text)| kind == b'V' && ["FATAL", "PANIC"].contains(&text))
    }
}

/// The user whose server listens there.
fn owner(stream: &UnixStream) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: a structure of our own and its size.
    match unsafe { libc::getsockopt(stream.as_raw_fd(), level, name, (&raw mut peer).cast(), &mut length) } {
        0 => Ok(peer.uid),
        _ => Err(io::Error::last_os_error()),
    }
}

fn user_name(uid: u32) -> Option<String> {
    // SAFETY: the agent has one thread at work, and the name is copied at once.
    let found = unsafe { libc::getpwuid(uid).as_ref() }?;
    // SAFETY: the name of an entry is a string.
    unsafe { CStr::from_ptr(found.pw_name) }.to_str().ok().map(str::to_owned)
}

/// Connect as a user. The thread of its own ends with that right; the agent's keeps its own, and its signal for the
/// death of its parent, which a change of user would clear (prctl(2)).
fn connect_as(socket: &str, uid: u32) -> io::Result<UnixStream> {
    if rustix::process::geteuid().as_raw() == uid {
        return connect_socket(Path::new(socket));
    }
    let connecting = move |path: String| {
        const SAME: libc::c_long = -1;
        // SAFETY: numbers only. The call changes this thread, as that of the C library would not.
        match unsafe { libc::syscall(libc::SYS_setresuid, SAME, libc::c_long::from(uid), SAME) } {
            0 => connect_socket(Path::new(&path)),
            _ => Err(io::Error::last_os_error()),
        }
    };
    let path = socket.to_owned();
    let thread = thread::Builder::new().spawn(move || connecting(path))?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the connection failed")))
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// With standard_conforming_strings only the quote is special.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn message(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if !(4..LONGEST_BYTES).contains(&length) {
        return Err(io::Error::other("it does not answer as PostgreSQL does"));
    }
    let mut body = vec![0; length - 4];
    from.read_exact(&mut body)?;
    Ok((head[0], body))
}

/// Those of a row (DataRow); none of a malformed one.
fn columns(body: &[u8]) -> Option<Vec<String>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut columns = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        columns.push(String::from_utf8(after.get(..length)?.to_vec()).ok()?);
        rest = &after[length..];
    }
    Some(columns)
}

/// Those of an ErrorResponse, each with its letter.
fn fields(body: &[u8]) -> impl Iterator<Item = (u8, &str)> {
    body.split(|byte| *byte == 0).filter_map(|field| {
        let (kind, text) = field.split_first()?;
        Some((*kind, std::str::from_utf8(text).ok()?))
    })
}

fn error_message(body: &[u8]) -> String {
    let message = fields(body).find(|(kind, _)| *kind == b'M').map(|(_, text)| text.to_owned());
    message.unwrap_or_else(|| "the server refused it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_quotes() {
        assert_eq!(literal("4MB'; DROP TABLE x; --"), "'4MB''; DROP TABLE x; --'");
        assert_eq!(identifier("a\" = 1; --"), "\"a\"\" = 1; --\"");
    }

    #[test]
    fn only_whole_rows_are_taken() {
        assert_eq!(columns(b"\0\x02\0\0\0\x01a\xff\xff\xff\xff"), Some(vec!["a".to_owned(), String::new()]));
        for wrong in [b"".as_slice(), b"\0", b"\0\x01", b"\0\x01\0\0\0\x05a", b"\0\x01\x7f\xff\xff\xffa"] {
            assert_eq!(columns(wrong), None, "{wrong:?}");
        }
        for wrong in [b"".as_slice(), b"Z\0\0\0\x03", b"Z\xff\xff\xff\xff", b"Z\0\0\0\x05"] {
            assert!(message(&mut &*wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_error_says_its_message() {
        let body = b"SERROR\0VERROR\0C42704\0Mno such setting\0\0";
        assert_eq!(error_message(body), "no such setting");
        assert_eq!(error_message(b"\0"), "the server refused it");
    }
}
