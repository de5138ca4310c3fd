//! A session: its journal and registry entry, made and removed in a safe order.

use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;

use crate::disk::Disk;
use crate::process::roll::Leader;
use crate::safety::journal::{self, Journal};
use crate::safety::record::{Header, JOURNAL_VERSION};
use crate::safety::registry::Registry;
use crate::safety::system::System;
use crate::safety::undo::Undo;

pub struct Session<S: System> {
    pub system: S,
    pub registry: Registry<S>,
    pub journal: Journal<S>,
    pub header: Header,
}

impl<S: System> Session<S> {
    /// A new one of this process, with its journal in `directory`.
    /// If this fails, nothing is there.
    pub fn begin(system: &S, directory: &Path, registry: &Registry<S>) -> Result<Session<S>, String> {
        let now = system.wall_clock();
        let owner = system.own_process();
        let header = Header {
            journal: JOURNAL_VERSION,
            session: name(now, owner),
            boot: system.boot_id()?,
            machine: system.machine_id(),
            pid: owner.pid,
            started_ticks: owner.started_ticks,
            began_s: now.as_secs(),
        };
        let path = directory.join(journal::file_name(&header.session));
        registry.enter(&header, &path)?;
        let journal = match Journal::create(system, directory, header.clone()) {
            Ok(journal) => journal,
            Err(reason) => {
                // A journal that cannot be removed stays in the registry, for a later restore.
                if system.disk().about_path(&path) == Err(Errno::NOENT) {
                    let _ = journal::sync_directory_of(system, &path).and_then(|()| registry.remove(&header.session));
                }
                return Err(reason);
            }
        };
        if let Err(reason) = registry.begin(&header) {
            // In this order, as at the end: of what was begun and is not settled, the journal
            // would be missed.
            let _ = close(system, registry, &journal, Some(&header));
            return Err(reason);
        }
        Ok(Session { system: system.clone(), registry: registry.clone(), journal, header })
    }

    /// Have `steps` on disk. If that fails, none of them is there.
    pub fn append(&self, steps: &[Undo]) -> Result<(), String> {
        let mut names: Vec<String> = steps.iter().filter_map(Undo::tunable).map(str::to_owned).collect();
        names.dedup();
        let before = self.journal.appended();
        self.registry.add(&self.header, names, before + steps.len())?;
        let appended = self.journal.append(steps);
        if appended.is_err() {
            // If this fails too, they are missed later, without need.
            let _ = self.registry.add(&self.header, Vec::new(), before);
        }
        appended
    }

    /// The same in another process, which was forked.
    #[cfg(test)]
    pub fn seen_by(&self, system: &S, file: journal::File<S>, directory: journal::File<S>) -> Session<S> {
        let journal = self.journal.seen_by(system, file, directory);
        let registry = self.registry.seen_by(system);
        Session { system: system.clone(), registry, journal, header: self.header.clone() }
    }

    pub fn owner(&self) -> Leader {
        self.header.owner()
    }

    /// Everything was put back: nothing of it is left.
    pub fn close(&self) -> Result<(), String> {
        close(&self.system, &self.registry, &self.journal, Some(&self.header))
    }
}

/// The oldest come first in the order of names.
fn name(now: Duration, owner: Leader) -> String {
    format!("{:x}-{}-{}", now.as_nanos(), owner.pid, owner.started_ticks)
}

/// Whose session has that name.
pub fn owner_of(name: &str) -> Option<Leader> {
    let mut fields = name.rsplit('-');
    let started_ticks = fields.next()?.parse().ok()?;
    Some(Leader { pid: fields.next()?.parse().ok()?, started_ticks })
}

/// Remove a settled session's journal, its roll and its registry entry.
pub fn close<S: System>(
    system: &S,
    registry: &Registry<S>,
    journal: &Journal<S>,
    header: Option<&Header>,
) -> Result<(), String> {
    if let Some(header) = header {
        // Or else a crash before the last step would have the journal taken for a deleted
        // one.
        registry.settle(&header.session, &header.boot)?;
        system.remove_roll(header.owner());
    }
    journal.remove()?;
    header.map_or(Ok(()), |header| registry.remove(&header.session))
}
