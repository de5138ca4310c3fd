//! A mount directory that only root can exchange, made if needed.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use crate::disk::fs::{self, DirBuilder, Metadata};
use crate::errno;

const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// A mount directory, and the directories made for it, outermost first.
#[derive(Debug)]
pub struct MountPoint {
    path: PathBuf,
    made: Vec<PathBuf>,
}

/// The directories that [`MountPoint::prepare`] would make, the outermost first.
/// The error says why `path` is not safe to mount on: another user could exchange it before it is mounted and given to
/// its owner.
pub fn missing(path: &str) -> Result<Vec<PathBuf>, String> {
    let parts = Path::new(path).components();
    let plain = parts.clone().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.starts_with('/') || !plain || path == "/" {
        return Err(format!("{path:?} is no plain absolute path of a directory"));
    }
    let mut missing = Vec::new();
    let mut place = PathBuf::new();
    let mut above: Option<Metadata> = None;
    for part in parts {
        place.push(part);
        match fs::symlink_metadata(&place) {
            Ok(about) => {
                check(&about, above.as_ref()).map_err(|reason| format!("{}: {reason}", place.display()))?;
                above = Some(about);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => missing.push(place.clone()),
            Err(error) => return Err(format!("{}: {}", place.display(), errno::of(error))),
        }
    }
    Ok(missing)
}

/// Whether only root can exchange a directory in the one `above` it.
fn check(about: &Metadata, above: Option<&Metadata>) -> Result<(), String> {
    if !about.is_dir() {
        return Err("it is no directory".to_owned());
    }
    let Some(above) = above else { return Ok(()) };
    let shared = above.mode() & WRITABLE_BY_OTHERS != 0;
    let protected = above.mode() & STICKY != 0 && about.uid() == 0;
    if above.uid() != 0 || (shared && !protected) {
        return Err("others than root could exchange it".to_owned());
    }
    Ok(())
}

/// Remove a directory that an agent has made, if it is empty.
/// That it is gone is no error.
pub fn remove(path: &str) -> Result<(), String> {
    if !missing(path)?.is_empty() {
        return Ok(());
    }
    fs::remove_dir(path).map_err(|error| format!("{path} cannot be removed: {}", errno::of(error)))
}

impl MountPoint {
    pub fn prepare(path: &str) -> Result<MountPoint, String> {
        let mut point = MountPoint { path: PathBuf::from(path), made: Vec::new() };
        for place in missing(path)? {
            let made = DirBuilder::new().mode(0o755).create(&place);
            made.map_err(errno::at(place.display()))?;
            point.made.push(place);
        }
        // What was made a moment ago, and all above it.
        missing(path).map(|_| point)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Remove what was made for it.
    pub fn remove(&mut self) -> Result<(), String> {
        while let Some(place) = self.made.pop() {
            fs::remove_dir(&place).map_err(errno::at(place.display()))?;
        }
        Ok(())
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A new directory, seen as root's only if root runs the tests.
    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ajuste-mount-point-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn text(path: &Path) -> &str {
        path.to_str().unwrap()
    }

    #[test]
    fn only_plain_absolute_paths_are_mounted_on() {
        for wrong in ["", "/", "run/x", "/run/../x", "."] {
            assert!(missing(wrong).unwrap_err().contains("no plain absolute path"), "{wrong}");
        }
        assert!(missing("/proc/version").unwrap_err().contains("no directory"));
    }

    #[test]
    fn what_is_missing_is_made_and_removed_again() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = folder("made");
        let inner = folder.join("a/b");
        let mut point = MountPoint::prepare(text(&inner)).unwrap();
        assert!(inner.is_dir());
        assert!(missing(text(&inner)).unwrap().is_empty());
        assert!(remove(text(&folder)).unwrap_err().contains("Directory not empty"));
        point.remove().unwrap();
        remove(text(&inner)).unwrap();
        assert!(folder.is_dir() && !folder.join("a").exists());
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn what_others_could_exchange_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = folder("shared");
        let (open, inner) = (folder.join("open"), folder.join("open/inner"));
        fs::create_dir_all(&inner).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(missing(text(&inner)).unwrap_err().contains("others than root could exchange it"));
        fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(missing(text(&inner)), Ok(vec![]));
        std::os::unix::fs::chown(&inner, Some(12345), None).unwrap();
        assert!(missing(text(&inner)).unwrap_err().contains("others than root could exchange it"));
        symlink(&open, folder.join("link")).unwrap();
        assert!(missing(text(&folder.join("link"))).unwrap_err().contains("no directory"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
