//! Simulates keeper, guardian, journal, registry and restore on machines in memory.
//! Every fault at every operation, and random events from a seed.
//!
//! `AJUSTE_SEEDS=100000 cargo test simulation::many -- --ignored --nocapture` carries out that many, and says as JSON
//! what it found; `AJUSTE_FIRST_SEED=N AJUSTE_SEEDS=1` has one of them again, and prints
//! each step. `AJUSTE_PLANTED` breaks something first.

mod chance;
mod files;
mod lock;
mod process;
mod scenario;
mod volume;
mod world;

use std::collections::BTreeSet;

use rustix::io::Errno;

use scenario::{run, session_with};
use world::{Fault, Planted, Wrong};

const FAULTS: [Fault; 9] = [
    Fault::Error(Errno::NOSPC),
    Fault::Error(Errno::IO),
    Fault::ReadOnly,
    Fault::Short,
    Fault::Torn,
    Fault::Loses,
    Fault::Killed { after: false },
    Fault::Killed { after: true },
    Fault::Reset,
];
const SEEDS: u64 = 500;
const FOUND_WITHIN: u64 = 1000;

/// The first seed that breaks a rule, and what breaks.
/// With a planted defect: what that defect breaks.
fn first_wrong(seeds: std::ops::Range<u64>, planted: Planted) -> Option<(u64, Vec<Wrong>)> {
    let counts = |wrong: &Wrong| match planted {
        Planted::Nothing => true,
        Planted::NoSync | Planted::WriteFirst | Planted::NoBootId => matches!(wrong, Wrong::Value(_)),
        Planted::NoLock => matches!(wrong, Wrong::Another(_)),
    };
    seeds.into_iter().find_map(|seed| {
        let wrong = run(seed, planted, |_| {}).err()?;
        wrong.iter().any(counts).then_some((seed, wrong))
    })
}

#[test]
fn nothing_is_left_behind_under_any_seed() {
    assert_eq!(first_wrong(0..SEEDS, Planted::Nothing), None);
}

#[test]
fn what_is_broken_on_purpose_is_found_as_what_it_is() {
    for planted in [Planted::NoSync, Planted::WriteFirst, Planted::NoBootId, Planted::NoLock] {
        assert!(first_wrong(0..FOUND_WITHIN, planted).is_some(), "{planted:?}");
    }
}

/// The power takes the values with it.
/// Only what the storage loses while the machine goes on costs a value.
#[test]
fn a_power_failure_without_syncing_costs_no_value_but_the_truth_about_journals() {
    let seeds =
        |planted| (0..SEEDS).filter_map(move |seed| run(seed, planted, |world| world.storage_is_sound = true).err());
    let wrong: Vec<Wrong> = seeds(Planted::NoSync).flatten().collect();
    assert!(wrong.iter().any(|wrong| matches!(wrong, Wrong::Untrue(_))));
    let values: Vec<&Wrong> = wrong.iter().filter(|wrong| matches!(wrong, Wrong::Value(_))).collect();
    assert!(values.is_empty(), "{values:?}");
}

#[test]
fn a_seed_is_the_same_every_time() {
    for seed in 0..20 {
        assert_eq!(run(seed, Planted::NoSync, |_| {}), run(seed, Planted::NoSync, |_| {}));
    }
}

#[test]
fn every_fault_at_every_operation_of_a_session_leaves_nothing() {
    let mut seen = BTreeSet::new();
    let whole = session_with(0, None, &mut |world| seen.extend(world.seen.iter().copied())).unwrap();
    assert!(whole > 50, "{whole}");
    for fault in FAULTS {
        for at in 0..whole {
            let ended = session_with(at, Some(fault), &mut |world| seen.extend(world.seen.iter().copied()));
            assert!(ended.is_ok(), "{fault:?} at operation {at}: {ended:?}");
        }
    }
    let layer = include_str!("../disk.rs");
    let operations = layer.lines().filter_map(|line| {
        let name = line.strip_prefix("    fn ")?.split_once('(')?.0;
        line.ends_with(';').then_some(name)
    });
    let missed: Vec<&str> = operations.filter(|name| !seen.contains(name)).collect();
    assert!(missed.is_empty(), "never met with a fault: {missed:?}");
}

#[test]
#[ignore = "as many as AJUSTE_SEEDS says: python -m benchmarks.simulation"]
fn many() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().expect(name));
    let planted = match std::env::var("AJUSTE_PLANTED").as_deref() {
        Ok("no-sync") => Planted::NoSync,
        Ok("write-first") => Planted::WriteFirst,
        Ok("no-boot-id") => Planted::NoBootId,
        Ok("no-lock") => Planted::NoLock,
        _ => Planted::Nothing,
    };
    let first = number("AJUSTE_FIRST_SEED", 0);
    let seeds = number("AJUSTE_SEEDS", SEEDS);
    if seeds == 1 {
        let _ = run(first, planted, |world| world.tells = true);
    }
    let wrong = first_wrong(first..first + seeds, planted);
    let words = |wrong: Vec<Wrong>| wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let (seed, reason) = wrong.map_or((None, None), |(seed, wrong)| (Some(seed), Some(words(wrong))));
    println!("\n{}", serde_json::json!({"first": first, "seeds": seeds, "wrong seed": seed, "reason": reason}));
}
