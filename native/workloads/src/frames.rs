//! An interactive task: frames that need CPU time before a deadline.
//!
//! A profile says how often a frame is due and how much CPU time it takes. The figures are those of Con Kolivas's
//! interbench (its readme, "What interactive tasks are simulated and how"): audio wakes every 50 ms and needs 5 % of the
//! CPU, video 60 times a second and needs 40 %, a window that is dragged needs anything between nothing and all (here:
//! from one frame to the next, over and over), and a game draws as fast as it can, here frames of 5 ms.
//!
//! A frame that is not ready when the next one is due is late: those that were due meanwhile are missed, and the next
//! one starts when one is due again. A game's frames are due at no moment, so none is late.
//!
//! Output, to be read by programs: how many frames were due, were drawn, were in time; how long all took; the time from
//! when a frame was due to when it was ready.
//! ```text
//! frames profile=video due=300 drawn=290 in_time=281 elapsed_ns=5000103220 min_ns=6670000 p50_ns=… max_ns=…
//! ```

use std::io::Write;

use lexopt::prelude::*;

use crate::clock::cpu_seconds;
use crate::clock::{least_slack, now_ns, sleep_until};
use crate::percentile::said;
use crate::request::{Fault, number};
use crate::spin::burn;

/// Iterations between two looks at the CPU time: some microseconds.
const BATCH: u32 = 1 << 11;
const A_DAY_MS: u64 = 86_400_000;
const STEPS_OF_A_DRAG: i64 = 101;

/// `every_ns` is 0 where frames are drawn as fast as it goes.
struct Profile {
    name: &'static str,
    every_ns: i64,
    needs: fn(frame: i64) -> i64,
}

const PROFILES: [Profile; 4] = [
    Profile { name: "audio", every_ns: 50_000_000, needs: |_| 2_500_000 },
    Profile { name: "video", every_ns: 16_666_667, needs: |_| 6_666_667 },
    Profile { name: "drag", every_ns: 16_666_667, needs: |frame| 16_666_667 * (frame * 37 % STEPS_OF_A_DRAG) / 100 },
    Profile { name: "game", every_ns: 0, needs: |_| 5_000_000 },
];

pub fn run(mut arguments: lexopt::Parser) -> Result<(), Fault> {
    let (mut profile, mut milliseconds) = (&PROFILES[1], 5000);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("profile") => profile = profile_of(&arguments.value()?.string()?)?,
            Long("milliseconds") => milliseconds = number(&mut arguments, "milliseconds", 100, A_DAY_MS)?,
            other => return Err(other.unexpected().into()),
        }
    }
    least_slack()?;
    let drawn = draw(profile, milliseconds as i64 * 1_000_000)?;
    let mut times = drawn.times;
    times.sort_unstable();
    let (min, max) = (times[0], times[times.len() - 1]);
    writeln!(
        std::io::stdout(),
        "frames profile={} due={} drawn={} in_time={} elapsed_ns={} min_ns={min} {} max_ns={max}",
        profile.name,
        drawn.due,
        times.len(),
        drawn.in_time,
        drawn.elapsed_ns,
        said(&times)
    )?;
    Ok(())
}

fn profile_of(name: &str) -> Result<&'static Profile, lexopt::Error> {
    PROFILES.iter().find(|profile| profile.name == name).ok_or_else(|| {
        format!("--profile must be {}, not {name:?}", PROFILES.map(|profile| profile.name).join(", ")).into()
    })
}

/// `times` from when a frame was due to when it was ready, in ns.
struct Drawn {
    due: i64,
    in_time: i64,
    elapsed_ns: i64,
    times: Vec<i64>,
}

/// Frames for `window_ns`; at least one.
fn draw(profile: &Profile, window_ns: i64) -> Result<Drawn, Fault> {
    let start = now_ns();
    let (mut frame, mut in_time, mut times) = (0, 0, Vec::new());
    let mut due_ns = start;
    while times.is_empty() || due_ns - start < window_ns {
        sleep_until(due_ns)?;
        compute((profile.needs)(frame));
        let now = now_ns();
        times.push(now - due_ns);
        if profile.every_ns == 0 {
            (frame, in_time, due_ns) = (frame + 1, in_time + 1, now);
        } else {
            let missed = missed(now - due_ns, profile.every_ns);
            in_time += i64::from(missed == 0);
            frame += 1 + missed;
            due_ns = start + frame * profile.every_ns;
        }
    }
    Ok(Drawn { due: frame, in_time, elapsed_ns: now_ns() - start, times })
}

/// How many further frames were due before one was ready that took `took_ns`.
fn missed(took_ns: i64, every_ns: i64) -> i64 {
    (took_ns - 1).max(0) / every_ns
}

/// Use that much CPU time.
fn compute(needs_ns: i64) {
    let until = cpu_seconds() + needs_ns as f64 * 1e-9;
    while cpu_seconds() < until {
        burn(BATCH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_in_time_until_the_next_one_is_due() {
        assert_eq!([1, 99, 100, 101, 200, 201, 1000].map(|took| missed(took, 100)), [0, 0, 0, 1, 1, 2, 9]);
    }

    #[test]
    fn a_dragged_window_needs_every_share_of_the_cpu_once() {
        let mut needs: Vec<i64> = (0..STEPS_OF_A_DRAG).map(PROFILES[2].needs).collect();
        needs.sort_unstable();
        needs.dedup();
        assert_eq!((needs.len() as i64, needs[0], needs[100]), (STEPS_OF_A_DRAG, 0, 16_666_667));
    }
}
