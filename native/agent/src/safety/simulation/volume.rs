//! A file system in memory that can lose what was not synced.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::safety::simulation::chance::Chance;

#[derive(Clone, Default)]
pub struct Inode {
    pub data: Vec<u8>,
    durable: Vec<u8>,
    /// Which machine has made it.
    pub maker: usize,
    /// Something that was not synced was lost; the next sync says so, once.
    lost: bool,
    pub mode: u32,
}

#[derive(Default)]
pub struct Volume {
    pub inodes: Vec<Inode>,
    pub names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pub directories: Vec<PathBuf>,
    /// Directories with a lost name.
    /// The next sync of each reports it, once.
    lost_in: Vec<PathBuf>,
    pub is_read_only: bool,
}

impl Volume {
    pub fn create(&mut self, path: &Path, mode: u32, maker: usize) -> usize {
        self.inodes.push(Inode { mode, maker, ..Inode::default() });
        self.names.insert(path.to_owned(), self.inodes.len() - 1);
        self.inodes.len() - 1
    }

    pub fn is_named(&self, inode: usize) -> bool {
        self.names.values().any(|named| *named == inode)
    }

    /// False if something of it was lost before.
    pub fn sync(&mut self, inode: usize) -> bool {
        let file = &mut self.inodes[inode];
        if std::mem::take(&mut file.lost) {
            return false;
        }
        file.durable = file.data.clone();
        true
    }

    /// False if something of it was lost before.
    pub fn sync_directory(&mut self, directory: &Path) -> bool {
        if self.lost_in.iter().any(|lost| lost == directory) {
            self.lost_in.retain(|lost| lost != directory);
            return false;
        }
        let is_in = |path: &PathBuf| path.parent() == Some(directory);
        self.durable_names.retain(|path, _| !is_in(path));
        let there = self.names.iter().filter(|(path, _)| is_in(path));
        self.durable_names.extend(there.map(|(path, inode)| (path.clone(), *inode)));
        true
    }

    pub fn list(&self, directory: &Path) -> Vec<OsString> {
        let here = self.names.keys().filter(|path| path.parent() == Some(directory));
        here.filter_map(|path| path.file_name().map(OsString::from)).collect()
    }

    /// Lose what was not synced, all or in part, each file and name for itself.
    /// With `tells` a process that has it open can notice: no boot came between.
    pub fn lose(&mut self, chance: &mut Chance, tells: bool) {
        for inode in &mut self.inodes {
            if inode.data == inode.durable {
                continue;
            }
            let kept = match chance.below(4) {
                0 => continue,
                1 => torn(&inode.durable, &inode.data, chance),
                _ => inode.durable.clone(),
            };
            inode.data = kept;
            inode.durable = inode.data.clone();
            inode.lost = tells;
        }
        let mut paths: Vec<PathBuf> = self.names.keys().chain(self.durable_names.keys()).cloned().collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            if self.names.get(&path) != self.durable_names.get(&path) && chance.one_in(2) {
                self.lost_in.extend(path.parent().filter(|_| tells).map(PathBuf::from));
                match self.durable_names.get(&path) {
                    Some(inode) => self.names.insert(path, *inode),
                    None => self.names.remove(&path),
                };
            }
        }
        self.durable_names = self.names.clone();
    }
}

/// Some of what was appended is there; the rest is missing, or there as zeros.
fn torn(durable: &[u8], data: &[u8], chance: &mut Chance) -> Vec<u8> {
    if data.len() <= durable.len() {
        return data.to_vec();
    }
    let more = (data.len() - durable.len()) as u64;
    let cut = durable.len() + chance.below(more) as usize;
    let mut kept = data.to_vec();
    match chance.one_in(2) {
        true => kept.truncate(cut),
        false => kept[durable.len()..cut].fill(0),
    }
    kept
}
