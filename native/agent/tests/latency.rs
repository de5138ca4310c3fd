//! The bound on wake-up latency holds only while the agent has its file open.

use std::fs;

use ajuste_agent::place::tunable::{keep, read, write};
use ajuste_agent::plan::Location;

fn opened() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.filter(|target| target.ends_with("cpu_dma_latency")).count()
}

#[test]
fn a_bound_is_held_until_it_is_released() {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 || fs::metadata("/dev/cpu_dma_latency").is_err() {
        eprintln!("skipped: needs root and /dev/cpu_dma_latency");
        return;
    }
    let place: Location = serde_json::from_value(serde_json::json!({"kind": "latency"})).unwrap();
    let kept = keep(&place).unwrap();
    for bound in ["1234567", "1234568"] {
        write(&place, bound).unwrap();
        // The strictest of all counts, and others may ask for something too.
        assert!(read(&place).unwrap().parse::<i32>().unwrap() <= bound.parse().unwrap());
        assert_eq!(opened(), 1, "one file, whatever is asked for");
    }
    for wrong in ["", "fast", "-1", "1e3"] {
        assert!(write(&place, wrong).is_err(), "{wrong}");
    }
    write(&place, &kept).unwrap();
    assert_eq!(opened(), 0);
}
