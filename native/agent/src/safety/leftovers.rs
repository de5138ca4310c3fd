//! Kills what a dead agent left: its process groups and all their descendants.
//!
//! All are stopped before the first is killed, because an orphan is no longer a descendant. One that has left both its
//! group and its parent is found in the session's enclosure, where there is one.
//!
//! The start time of a process distinguishes it from a later one with the same number.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::clock;
use crate::process::account::{self, Kin};
use crate::process::enclosure;
use crate::process::roll::{Leader, Roll};

/// What is stopped may just have forked.
const GOES: usize = 100;
/// For all of them together to be gone.
const DEATH: Duration = Duration::from_secs(5);

/// Kill them all and wait until they are gone.
pub fn kill(roll: Roll) {
    let leaders = roll.leaders();
    let mut stopped: BTreeMap<(i32, u64), OwnedFd> = BTreeMap::new();
    for _ in 0..GOES {
        let alive = account::everybody();
        let ours = ours(&alive, &leaders).into_iter().map(|kin| (kin.pid, kin.started_ticks));
        let new: Vec<_> = ours.filter(|one| !stopped.contains_key(one)).collect();
        if new.is_empty() {
            break;
        }
        // A fork that is under way when the signal comes is not carried out (fork(2) is
        // restarted after it).
        stopped.extend(new.into_iter().filter_map(|one| stop(one).map(|pidfd| (one, pidfd))));
    }
    for pidfd in stopped.values() {
        let _ = pidfd_send_signal(pidfd, Signal::KILL);
    }
    let deadline = Instant::now() + DEATH;
    for pidfd in stopped.values() {
        let rest = clock::timespec(deadline.saturating_duration_since(Instant::now()));
        let _ = poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&rest));
    }
    roll.enclosure().iter().for_each(|path| {
        enclosure::clear(path);
    });
}

fn ours<'a>(alive: &'a [Kin], leaders: &[Leader]) -> Vec<&'a Kin> {
    let is_current = |leader: &Leader| {
        let same_number = alive.iter().find(|kin| kin.pid == leader.pid);
        same_number.is_none_or(|kin| kin.started_ticks == leader.started_ticks)
    };
    let leaders: Vec<&Leader> = leaders.iter().filter(|leader| is_current(leader)).collect();
    let on_the_roll =
        |kin: &Kin| leaders.iter().any(|leader| kin.group == leader.pid && kin.started_ticks >= leader.started_ticks);
    let mut ours: Vec<&Kin> = alive.iter().filter(|kin| on_the_roll(kin)).collect();
    let mut looked_at = 0;
    while looked_at < ours.len() {
        let parent = ours[looked_at].pid;
        let children = alive.iter().filter(|kin| kin.parent == parent && !ours.iter().any(|one| one.pid == kin.pid));
        let children: Vec<&Kin> = children.collect();
        ours.extend(children);
        looked_at += 1;
    }
    ours
}

/// The pidfd holds the number first: the checked process is the killed one.
fn stop((pid, started_ticks): (i32, u64)) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    if account::start_ticks(pid) != Some(started_ticks) {
        return None;
    }
    pidfd_send_signal(&pidfd, Signal::STOP).ok()?;
    Some(pidfd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kin(pid: i32, parent: i32, group: i32, started_ticks: u64) -> Kin {
        Kin { pid, parent, group, started_ticks, is_dead: false }
    }

    fn numbers(alive: &[Kin], leaders: &[Leader]) -> Vec<i32> {
        ours(alive, leaders).iter().map(|kin| kin.pid).collect()
    }

    #[test]
    fn the_group_and_its_descendants_are_ours() {
        let alive =
            [kin(1, 0, 1, 0), kin(10, 1, 10, 50), kin(11, 10, 10, 51), kin(12, 11, 12, 52), kin(13, 12, 12, 53)];
        assert_eq!(numbers(&alive, &[Leader { pid: 10, started_ticks: 50 }]), [10, 11, 12, 13]);
        let without_leader = [kin(1, 0, 1, 0), kin(11, 1, 10, 51)];
        assert_eq!(numbers(&without_leader, &[Leader { pid: 10, started_ticks: 50 }]), [11]);
    }

    #[test]
    fn a_number_that_somebody_else_has_now_is_not_ours() {
        let alive = [kin(1, 0, 1, 0), kin(10, 1, 10, 99), kin(11, 10, 10, 100), kin(20, 1, 30, 10)];
        let leaders = [Leader { pid: 10, started_ticks: 50 }, Leader { pid: 30, started_ticks: 11 }];
        assert_eq!(numbers(&alive, &leaders), [0; 0]);
    }
}
