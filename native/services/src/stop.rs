//! Asks the keepers of a trial's services.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::directory;
use crate::report::{ACCOUNT, Account, BEGIN, STOP, Said};
use crate::request::Fault;

/// An answer is one line, of which no more is read.
const LONGEST: u64 = 1 << 16;

/// Begin the accounts.
pub fn begin(directories: &[PathBuf]) -> Result<ExitCode, Fault> {
    for directory in directories {
        ask(directory, BEGIN)
            .map_err(|reason| Fault::Run(format!("the keeper in {} does not answer: {reason}", directory.display())))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// End the accounts of all, then stop all, the last first. One that was never started has no account.
pub fn stop(directories: &[PathBuf]) -> Result<ExitCode, Fault> {
    let mut accounts: Vec<Option<Account>> = directories.iter().map(|one| ask(one, ACCOUNT).ok()).collect();
    for (directory, account) in directories.iter().zip(&mut accounts).rev() {
        if let (Some(account), Ok(stopped)) = (account, ask(directory, STOP)) {
            account.killed = stopped.killed;
            if account.log.is_empty() && stopped.killed {
                account.log = stopped.log;
            }
        }
    }
    Said::AjusteServices(accounts.into_iter().flatten().collect()).print();
    Ok(ExitCode::SUCCESS)
}

fn ask(directory: &Path, what: &str) -> std::io::Result<Account> {
    let mut stream = UnixStream::connect(directory::socket(directory))?;
    stream.write_all(format!("{what}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(std::io::Read::take(stream, LONGEST)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}
